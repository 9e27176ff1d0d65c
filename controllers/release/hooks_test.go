package release_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

var _ = Describe("Hooks", func() {
	const timeout = 3 * time.Second

	// Without a node no Pod ends by itself, and the finalizer keeps the ConfigMap after it has served its purpose.
	const (
		endless = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: endless\n  annotations: {helm.sh/hook: pre-install}\n" +
			"spec: {containers: [{name: endless, image: registry.example.com/endless:v1}]}\n"
		kept = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  finalizers: [release.test/hold]\n" +
			"  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded}\n"
	)

	// hook returns a hook with a deletion policy that has completed once it exists.
	hook := func(name, events, policy string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n"+
			"  annotations: {helm.sh/hook: %q, helm.sh/hook-delete-policy: %q}\n", name, events, policy)
	}
	// held returns the hook with a finalizer.
	held := func(hook string) string {
		return strings.Replace(hook, "metadata:\n", "metadata:\n  finalizers: [release.test/hold]\n", 1)
	}
	letGo := func(ctx SpecContext, namespace, name string) {
		GinkgoHelper()

		_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		Expect(err).To(Or(Not(HaveOccurred()), beNotFound()))
	}
	// end ends the Pod of a hook.
	end := func(ctx SpecContext, namespace, name string, phase corev1.PodPhase) {
		GinkgoHelper()

		_, err := client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
	}

	uninstall := func(ctx SpecContext, e *release.Engine, namespace string) (release.Result, error) {
		newest := state.Revision{Number: 1, Known: state.AnyRecord(), Hooks: hooksIn(namespace, 1)}

		return e.Uninstall(ctx, releaseIn(namespace), newest.Confirm(), cluster.RemoveOptions{}, announceBy(e, namespace))
	}

	DescribeTable("have a limit, and no worker waits for them", func(ctx SpecContext, hook, what string) {
		engine, err := release.NewEngine(apiServer.Config(), release.Options{Holder: "one", HookTimeout: timeout})
		Expect(err).NotTo(HaveOccurred())

		namespace := newNamespace(ctx)
		DeferCleanup(letGo, namespace, "kept")

		spec := specOf(namespace, "1.0.0", hook, configMap("config", ""))
		_, err = apply(ctx, engine, spec)
		Expect(expectError[*cluster.HookError](err).What).To(HavePrefix(what + namespace))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 pending-install"}))
		Expect(observe(ctx, engine, spec).State).To(Equal(state.RunningHooks))
		Expect(advance(ctx, engine, namespace)).To(MatchError(HavePrefix("waiting for " + what)))

		another := specOf(namespace, "2.0.0", configMap("config", ""))
		Expect(observe(ctx, engine, another).State).To(Equal(state.OutOfSync), "a correction does not wait")

		Eventually(func() error { return advance(ctx, engine, namespace) }).WithTimeout(3 * timeout).
			Should(MatchError(And(ContainSubstring(what+namespace), ContainSubstring("takes longer than 3s"))))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed"}))
	},
		Entry("while they run", endless, "hook Pod "),
		Entry("while they are deleted", kept, "the deletion of hook ConfigMap "),
	)

	It("continue in another process", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		_, err := apply(ctx, newEngine("one"), specOf(namespace, "1.0.0", endless, configMap("config", "")))
		expectError[*cluster.HookError](err)

		pod, err := client.CoreV1().Pods(namespace).Get(ctx, "endless", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		another := newEngine("another")
		expectError[*cluster.HookError](advance(ctx, another, namespace))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())

		end(ctx, namespace, "endless", corev1.PodSucceeded)
		Expect(advance(ctx, another, namespace)).To(Succeed())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(client.CoreV1().Pods(namespace).Get(ctx, "endless", metav1.GetOptions{})).
			To(HaveField("UID", pod.UID), "it runs once")
	})

	It("are what was announced, whatever the record claims", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		_, err := apply(ctx, engine, specOf(namespace, "1.0.0", endless, configMap("config", "")))
		expectError[*cluster.HookError](err)

		records := storage.New(client.CoreV1().Secrets(namespace), releaseIn(namespace))
		Expect(records.Load(ctx)).To(Succeed())

		for _, phase := range []helm.HookPhase{helm.PhaseSucceeded, helm.PhaseFailed, ""} {
			forged := records.Find(1)
			forged.Hooks[0].LastRun = helm.HookExecution{Phase: phase}
			Expect(records.Record(forged)).To(Succeed())
			expectError[*cluster.HookError](advance(ctx, newEngine("another"), namespace))
			Expect(configMaps(ctx, namespace)).To(BeEmpty())
		}

		end(ctx, namespace, "endless", corev1.PodSucceeded)
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
	})

	It("do not run again if what they have created is gone", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		_, err := apply(ctx, engine, specOf(namespace, "1.0.0", endless, configMap("config", "")))
		expectError[*cluster.HookError](err)

		run(ctx, "kubectl", "delete", "pod", "endless", "-n", namespace, "--grace-period=0", "--force")
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
	})

	It("that fail are deleted by the policy for that, and earlier ones as those that succeeded", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		failing := strings.Replace(endless, "helm.sh/hook: pre-install",
			"helm.sh/hook: pre-install, helm.sh/hook-weight: '1', helm.sh/hook-delete-policy: hook-failed", 1)

		_, err := apply(ctx, engine, specOf(namespace, "1.0.0", failing, configMap("config", ""),
			hook("deleted", "pre-install", "hook-succeeded"), hook("left", "pre-install", "hook-failed")))
		expectError[*cluster.HookError](err)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("deleted", "left"))

		end(ctx, namespace, "endless", corev1.PodFailed)
		Expect(advance(ctx, engine, namespace)).To(MatchError(And(HavePrefix("pre-install "), HaveSuffix("it failed"))))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("left"))
		Eventually(func() (*corev1.PodList, error) {
			return client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		}).Should(HaveField("Items", BeEmpty()))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed"}))
	})

	It("are deleted in the reverse order, and each is gone before the next", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		DeferCleanup(letGo, namespace, "second")

		_, err := apply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""),
			hook("first", "post-install", "hook-succeeded"), held(hook("second", "post-install", "hook-succeeded"))))
		expectError[*cluster.HookError](err)
		Expect(getConfigMap(ctx, namespace, "second").DeletionTimestamp).NotTo(BeNil())
		Expect(getConfigMap(ctx, namespace, "first").DeletionTimestamp).To(BeNil())

		letGo(ctx, namespace, "second")
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
	})

	It("replace those of an earlier revision once these are gone, if they have no policy", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		DeferCleanup(letGo, namespace, "each")

		each := hook("each", "pre-install,pre-upgrade", "")
		each = held(strings.Replace(each, ", helm.sh/hook-delete-policy: \"\"", "", 1))

		mustApply(ctx, engine, specOf(namespace, "1.0.0", each, configMap("config", "")))
		first := getConfigMap(ctx, namespace, "each").UID
		marks := And(HaveKey("meta.helm.sh/release-name"), HaveKey("meta.helm.sh/release-namespace"))
		Expect(getConfigMap(ctx, namespace, "config").Annotations).To(marks)
		Expect(getConfigMap(ctx, namespace, "each").Annotations).NotTo(HaveKey(HavePrefix("meta.helm.sh/")), "of a hook")
		Expect(run(ctx, "helm", "get", "all", name, "-n", namespace)).NotTo(ContainSubstring("meta.helm.sh/"), "a record")

		_, err := apply(ctx, engine, specOf(namespace, "1.1.0", each, configMap("config", "")))
		Expect(expectError[*cluster.HookError](err).What).To(HavePrefix("the deletion of hook "))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed", "2 pending-upgrade"}))

		letGo(ctx, namespace, "each")
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(getConfigMap(ctx, namespace, "each").UID).NotTo(Equal(first))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
	})

	It("that fail a rollback leave no pending revision", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		failing := strings.Replace(endless, "pre-install", "pre-rollback", 1)

		mustApply(ctx, engine, specOf(namespace, "1.0.0", failing, configMap("config", "1")))
		second := specOf(namespace, "2.0.0", configMap("config", "2"))
		mustApply(ctx, engine, second)

		options := release.RollbackOptions{
			Target: confirmed(1), Reason: "a test", Announce: announceBy(engine, namespace),
		}
		_, err := engine.Rollback(ctx, releaseIn(namespace), options, observe(ctx, engine, second))
		expectError[*cluster.HookError](err)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed", "3 pending-rollback"}))

		end(ctx, namespace, "endless", corev1.PodFailed)
		Expect(advance(ctx, engine, namespace)).To(MatchError(HavePrefix("pre-rollback ")))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed", "3 failed"}))
		Expect(getConfigMap(ctx, namespace, "config").Data).To(HaveKeyWithValue("key", "2"))

		shown := run(ctx, "helm", "history", name, "-n", namespace)
		Expect(shown).To(ContainSubstring("Rollback to 1: a test; the rollback failed: pre-rollback hook "))
	})

	DescribeTable("that `helm test` runs change nothing but their last run", func(ctx SpecContext, helm string) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		spec := specOf(namespace, "1.0.0", hook("tests", "test", "before-hook-creation"), configMap("config", ""))
		mustApply(ctx, engine, spec)

		before := newest(ctx, engine, namespace)
		record, err := engine.Read(ctx, releaseIn(namespace), before)
		Expect(err).NotTo(HaveOccurred())

		run(ctx, helm, "test", name, "-n", namespace)

		after := newest(ctx, engine, namespace)
		Expect(after.ResourceVersion).NotTo(Equal(before.ResourceVersion))
		Expect(after.Ours()).To(BeTrue())
		Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
		Expect(engine.Read(ctx, releaseIn(namespace), after)).To(HaveField("Digest", record.Digest))
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())
	}, Entry(nil, "helm"), Entry(nil, "helm4"))

	It("are kept if they are CRDs or namespaces, whatever their deletion policy is", func(ctx SpecContext) {
		engine, err := release.NewEngine(apiServer.Config(), release.Options{Holder: "one", HookTimeout: timeout})
		Expect(err).NotTo(HaveOccurred())

		namespace := newNamespace(ctx)
		annotations := "metadata:\n  annotations: {helm.sh/hook: pre-install, " +
			"helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}\n"
		hooks := []string{
			strings.Replace(crd("hooked"), "metadata:\n", annotations, 1),
			"apiVersion: v1\nkind: Namespace\n" + annotations + "  name: " + namespace + "-hook\n",
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", append(hooks, configMap("config", ""))...))
		run(ctx, "kubectl", "get", "crd/hooked.release.test", "namespace/"+namespace+"-hook")
	})

	// hooked returns a hook that has completed once it exists.
	hooked := func(name, events string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations: {helm.sh/hook: %q}\n",
			name, events)
	}
	inWaves := func(namespace string) release.Spec {
		last := strings.Replace(configMap("last", ""), "metadata:\n", "metadata:\n  finalizers: [release.test/hold]\n", 1)

		return specOf(namespace, "1.0.0", configMap("first", ""), ordered(1, last),
			hooked("before", "pre-install"), hooked("after", "post-install"),
			hooked("removing", "pre-delete"), hooked("removed", "post-delete"))
	}

	It("run around all waves", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		DeferCleanup(letGo, namespace, "last")

		mustApply(ctx, engine, inWaves(namespace))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "first"))
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "first", "last", "after"))
		Expect(newest(ctx, engine, namespace)).To(
			And(HaveField("Staged", false), HaveField("Status", state.StatusDeployed)))

		_, err := uninstall(ctx, engine, namespace)
		expectError[*cluster.RemainingError](err)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "first", "last", "after", "removing"))
		Expect(getConfigMap(ctx, namespace, "last").DeletionTimestamp).NotTo(BeNil())

		first := getConfigMap(ctx, namespace, "removing").UID

		letGo(ctx, namespace, "last")
		_, err = uninstall(ctx, engine, namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "after", "removing", "removed"))
		Expect(getConfigMap(ctx, namespace, "removing").UID).To(Equal(first), "it runs once")
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("of the last wave fail the revision", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		wrong := hooked("after", "post-install") + "data: wrong\n"
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("first", ""), ordered(1, configMap("last", "")), wrong))
		Expect(advance(ctx, engine, namespace)).To(MatchError(ContainSubstring("post-install ")))
		Expect(newest(ctx, engine, namespace)).To(And(
			HaveField("Status", state.StatusFailed), HaveField("Failure", state.FailureRejected)))
	})

	It("of an uninstall run once, whenever it is killed", func(ctx SpecContext) {
		runs := func(namespace string) map[string]types.UID {
			list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())

			found := map[string]types.UID{}

			for _, o := range list.Items {
				if strings.HasPrefix(o.Name, "remov") {
					found[o.Name] = o.UID
				}
			}

			return found
		}

		for n := 1; ; n++ {
			namespace := newNamespace(ctx)
			predecessor := newEngine("predecessor")
			mustApply(ctx, predecessor, specOf(namespace, "1.0.0", configMap("config", ""), ordered(1, configMap("last", "")),
				hooked("removing", "pre-delete"), hooked("removed", "post-delete")))

			Expect(advance(ctx, predecessor, namespace)).To(Succeed())

			victim, alive := killedAfter(n)
			_, _ = uninstall(ctx, victim, namespace)
			before := runs(namespace)

			By(fmt.Sprintf("continuing from %v with %v after write %d", history(ctx, namespace), before, n))
			Expect(uninstall(ctx, newEngine("successor"), namespace)).
				Error().NotTo(HaveOccurred())

			after := runs(namespace)
			Expect(after).To(And(HaveLen(2), HaveKey("removing"), HaveKey("removed")))

			for name, uid := range before {
				Expect(after).To(HaveKeyWithValue(name, uid), "it ran already")
			}

			Expect(history(ctx, namespace)).To(BeEmpty())

			if alive() {
				Expect(n).To(BeNumerically(">", 8), "the uninstall makes more writes than that")
				return
			}
		}
	})

	// A hook that is created twice fails: it exists, and its policy does not delete it before.
	inSteps := func(namespace, number string) release.Spec {
		once := func(name, event string) string { return hook(name+"-"+number[:1], event, "hook-failed") }

		return specOf(namespace, number, configMap("first", number), ordered(1, configMap("last", number)),
			once("before", "pre-install,pre-upgrade"), once("after", "post-install,post-upgrade"),
			once("before-rollback", "pre-rollback"), once("after-rollback", "post-rollback"))
	}
	install := func(ctx SpecContext, e *release.Engine, namespace string) error {
		_, err := apply(ctx, e, inSteps(namespace, "1.0.0"))
		return errors.Join(err, advance(ctx, e, namespace))
	}
	upgrade := func(ctx SpecContext, e *release.Engine, namespace string) error {
		_, err := apply(ctx, e, inSteps(namespace, "2.0.0"))
		return errors.Join(err, advance(ctx, e, namespace))
	}
	rollBack := func(ctx SpecContext, e *release.Engine, namespace string) error {
		options := release.RollbackOptions{
			Target: confirmed(1), Reason: "a test", Announce: announceBy(e, namespace),
		}
		_, err := e.Rollback(ctx, releaseIn(namespace), options, observe(ctx, e, inSteps(namespace, "2.0.0")))

		return errors.Join(err, advance(ctx, e, namespace))
	}

	DescribeTable("and waves continue after each write, and no hook runs twice", func(
		ctx SpecContext, before []func(SpecContext, *release.Engine, string) error,
		act func(SpecContext, *release.Engine, string) error, wanted string, hooks []string,
	) {
		for n := 1; ; n++ {
			namespace := newNamespace(ctx)
			for _, step := range before {
				Expect(step(ctx, newEngine("predecessor"), namespace)).To(Succeed())
			}

			victim, alive := killedAfter(n)
			err := act(ctx, victim, namespace)

			By(fmt.Sprintf("continuing from %v after write %d", history(ctx, namespace), n))
			Expect(err == nil).To(Equal(alive()))
			expectOneDeployed(ctx, namespace)

			successor := newEngine("successor")
			Expect(advance(ctx, successor, namespace)).To(Succeed())

			spec := inSteps(namespace, wanted)
			if observe(ctx, successor, spec).State != state.InSync {
				Expect(act(ctx, successor, namespace)).To(Succeed())
			}

			Expect(observe(ctx, successor, spec).State).To(Equal(state.InSync))
			Expect(newest(ctx, successor, namespace).Staged).To(BeFalse())
			Expect(configMaps(ctx, namespace)).To(ConsistOf(append(hooks, "first", "last")))
			Expect(getConfigMap(ctx, namespace, "last").Data).To(HaveKeyWithValue("key", wanted))
			Expect(history(ctx, namespace)).NotTo(ContainElement(ContainSubstring("pending")))
			expectOneDeployed(ctx, namespace)
			Expect(run(ctx, "helm", "status", name, "-n", namespace)).To(ContainSubstring("STATUS: deployed"))

			if alive() {
				Expect(n).To(BeNumerically(">", 10), "the action makes more writes than that")
				return
			}
		}
	},
		Entry("of an install", nil, install, "1.0.0", []string{"before-1", "after-1"}),
		Entry("of an upgrade", []func(SpecContext, *release.Engine, string) error{install}, upgrade, "2.0.0",
			[]string{"before-1", "after-1", "before-2", "after-2"}),
		Entry("of a rollback", []func(SpecContext, *release.Engine, string) error{install, upgrade}, rollBack, "1.0.0",
			[]string{"before-1", "after-1", "before-2", "after-2", "before-rollback-1", "after-rollback-1"}),
	)
})

// expectOneDeployed expects that no two revisions are deployed, and that helm can show the history.
func expectOneDeployed(ctx SpecContext, namespace string) {
	GinkgoHelper()

	revisions := history(ctx, namespace)
	if len(revisions) == 0 {
		return
	}

	isOther := func(r string) bool { return !strings.HasSuffix(r, " deployed") }
	deployed := slices.DeleteFunc(slices.Clone(revisions), isOther)
	Expect(len(deployed)).To(BeNumerically("<=", 1), "%v", revisions)
	Expect(strings.Count(run(ctx, "helm", "history", name, "-n", namespace), "\n")).To(Equal(len(revisions) + 1))
}
