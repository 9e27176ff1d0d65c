package release_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/longwait"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var _ = Describe("Hooks", func() {
	const timeout = 3 * time.Second

	// Without a node no Pod ends, and the finalizer keeps the ConfigMap after it has served its purpose.
	const (
		endless = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: endless\n  annotations: {helm.sh/hook: pre-install}\n" +
			"spec: {containers: [{name: endless, image: registry.example.com/endless:v1}]}\n"
		kept = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  finalizers: [release.test/hold]\n" +
			"  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded}\n"
	)

	DescribeTable("are waited for within a limit, and that is announced", func(ctx SpecContext, hook, what string) {
		engine, err := release.NewEngine(apiServer.Config(), release.Options{Holder: "one", HookTimeout: timeout})
		Expect(err).NotTo(HaveOccurred())

		namespace := newNamespace(ctx)

		DeferCleanup(func(ctx SpecContext) {
			_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, "kept", types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).To(Or(Not(HaveOccurred()), beNotFound()))
		})

		var announced []string

		waiting := longwait.With(ctx, func(what string) { announced = append(announced, what) })
		start := time.Now()
		_, err = apply(waiting, engine, specOf(namespace, "1.0.0", hook, configMap("config", "")))

		Expect(time.Since(start)).To(BeNumerically("<", 3*timeout))
		Expect(err).To(MatchError(ContainSubstring(what + namespace)))
		Expect(announced).To(ConsistOf(HavePrefix(what + namespace)))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed"}))
	},
		Entry("while they run", endless, "hook Pod "),
		Entry("while they are deleted", kept, "the deletion of hook ConfigMap "),
	)

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
	letGo := func(ctx SpecContext, namespace string) {
		_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, "last", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		Expect(err).To(Or(Not(HaveOccurred()), beNotFound()))
	}

	It("run around all waves", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		DeferCleanup(letGo, namespace)

		mustApply(ctx, engine, inWaves(namespace))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "first"))
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "first", "last", "after"))
		Expect(newest(ctx, engine, namespace)).To(
			And(HaveField("Staged", false), HaveField("Status", state.StatusDeployed)))

		_, err := engine.Uninstall(ctx, releaseIn(namespace), confirmed(1), cluster.RemoveOptions{})
		expectError[*cluster.RemainingError](err)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("before", "first", "last", "after", "removing"))
		Expect(getConfigMap(ctx, namespace, "last").DeletionTimestamp).NotTo(BeNil())

		first := getConfigMap(ctx, namespace, "removing").UID

		letGo(ctx, namespace)
		_, err = engine.Uninstall(ctx, releaseIn(namespace), confirmed(1), cluster.RemoveOptions{})
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
			mustApply(ctx, newEngine("predecessor"), specOf(namespace, "1.0.0", configMap("config", ""),
				hooked("removing", "pre-delete"), hooked("removed", "post-delete")))

			victim, alive := killedAfter(n)
			_, _ = victim.Uninstall(ctx, releaseIn(namespace), confirmed(1), cluster.RemoveOptions{})
			before := runs(namespace)

			By(fmt.Sprintf("continuing from %v with %v after write %d", history(ctx, namespace), before, n))
			Expect(newEngine("successor").Uninstall(ctx, releaseIn(namespace), confirmed(1), cluster.RemoveOptions{})).
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
})
