package release_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
)

// ordered returns an object with an apply-order.
func ordered(order int, object string) string {
	return strings.Replace(object, "metadata:\n",
		fmt.Sprintf("metadata:\n  annotations: {capstan.dev/apply-order: %q}\n", fmt.Sprint(order)), 1)
}

// advance takes all steps that are left, as long as the process lives.
func advance(ctx context.Context, e *release.Engine, namespace string) error {
	for {
		history := accepted(ctx, newEngine("observer"), releaseIn(namespace))

		revision, exists := history.Newest()
		if !exists || !revision.Staged() || revision.Status != v1alpha2.RevisionDeployed {
			return nil
		}

		if _, err := advanceOnce(ctx, e, releaseIn(namespace), revision); err != nil {
			return err
		}
	}
}

var _ = Describe("Waves", func() {
	first := func(namespace string) release.Spec {
		return specOf(namespace, "1.0.0", ordered(-1, configMap("a", "1")), configMap("b", "1"),
			ordered(1, configMap("c", "1")), ordered(2, configMap("dropped", "1")), ordered(3, configMap("dropped-too", "1")))
	}
	second := func(namespace string) release.Spec {
		return specOf(namespace, "2.0.0", ordered(-1, configMap("a", "2")), configMap("b", "2"),
			ordered(1, configMap("c", "2")), ordered(2, configMap("added", "2")))
	}

	install := func(ctx context.Context, e *release.Engine, spec release.Spec) error {
		_, err := applySpec(ctx, e, spec)
		return errors.Join(err, advance(ctx, e, spec.Release.Namespace))
	}
	// values returns the content of the ConfigMaps of a release.
	values := func(ctx context.Context, namespace string) map[string]string {
		GinkgoHelper()

		list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())

		found := map[string]string{}

		for _, c := range list.Items {
			if c.Name != "kube-root-ca.crt" {
				found[c.Name] = c.Data["key"]
			}
		}

		return found
	}

	It("are applied one by one", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		mustApply(ctx, engine, first(namespace))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("a"))

		for _, added := range []string{"b", "c", "dropped", "dropped-too"} {
			revision := newest(ctx, engine, namespace)
			Expect(revision.Staged()).To(BeTrue())

			before := configMaps(ctx, namespace)
			_, err := advanceOnce(ctx, engine, releaseIn(namespace), revision)
			Expect(err).NotTo(HaveOccurred())
			Expect(configMaps(ctx, namespace)).To(ConsistOf(append(before, added)))
		}

		Expect(newest(ctx, engine, namespace).Staged()).To(BeFalse())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
	})

	It("have the time of the last one, also once all are applied", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("a", "1"), ordered(1, configMap("b", "1"))))

		first := newest(ctx, engine, namespace)
		Eventually(time.Now).Should(BeTemporally(">", first.LastTransitionTime.Add(2*time.Second)))
		Expect(advanceOnce(ctx, engine, releaseIn(namespace), first)).Error().NotTo(HaveOccurred())

		complete := newest(ctx, engine, namespace)
		Expect(complete.Staged()).To(BeFalse())
		Expect(complete.LastTransitionTime.Time).To(BeTemporally(">", first.LastTransitionTime.Time))

		markHealthy(ctx, releaseIn(namespace))
		mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("a", "2")))
		Expect(newest(ctx, engine, namespace)).To(And(HaveField("Staged()", false), HaveField("Number", 2)))
	})

	It("keep what a revision drops until all are applied, unlike a revision without waves", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		manager := func(image string) string { return strings.Replace(deployment("manager", "1"), ":v1", ":"+image, 1) }

		mustApply(ctx, engine, specOf(namespace, "1.0.0", manager("v1"), configMap("a", ""), configMap("b", "")))
		mustApply(ctx, engine, specOf(namespace, "1.1.0", manager("v2"), configMap("b", "")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("b"))
		Expect(getDeployment(ctx, namespace, "manager").Status.AvailableReplicas).To(BeZero(), "it is not awaited")

		mustApply(ctx, engine, specOf(namespace, "1.2.0", manager("v3"), ordered(1, configMap("c", ""))))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("b"), "the next wave waits for the manager")
		Expect(advance(ctx, engine, namespace)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("c"))
	})

	It("may be what a policy of an earlier one admits", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		governed := func(version string) release.Spec {
			return specOf(namespace, version, ordered(-10, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: `+namespace+`
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name != 'governed' || object.data.key == '`+version+`'"}]
`), ordered(-10, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: `+namespace+`
spec: {policyName: `+namespace+`, validationActions: [Deny]}
`), configMap("governed", version))
		}

		Expect(install(ctx, engine, governed("1.0.0"))).To(Succeed())
		Eventually(func() error {
			return command(ctx, "kubectl", "create", "configmap", "governed", "-n", namespace, "--dry-run=server",
				"--from-literal=key=2.0.0").Run()
		}).ShouldNot(Succeed())

		mustApply(ctx, engine, governed("2.0.0"))

		// The API server needs a moment to apply the policy.
		Eventually(func() error { return advance(ctx, engine, namespace) }).Should(Succeed())
		Expect(values(ctx, namespace)).To(Equal(map[string]string{"governed": "2.0.0"}))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))

		Expect(uninstall(ctx, engine, releaseIn(namespace), 1, true)).Error().NotTo(HaveOccurred())
	})

	It("are refused as a whole if a field of a later one is wrong", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		Expect(install(ctx, engine, first(namespace))).To(Succeed())

		_, err := applySpec(ctx, engine, specOf(namespace, "2.0.0",
			ordered(-1, configMap("a", "2")), deployment("manager", "-1")))
		expectError[*apply.DryRunError](err)
		Expect(values(ctx, namespace)).To(HaveKeyWithValue("a", "1"))
	})

	It("fail the revision if an object of a later one belongs to another release meanwhile", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("a", "1"), ordered(1, configMap("b", "1"))))

		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "b", Annotations: map[string]string{
				v1alpha2.HelmReleaseNameAnnotation: "other", v1alpha2.HelmReleaseNamespaceAnnotation: namespace,
			},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		_, err = advanceOnce(ctx, engine, releaseIn(namespace), newest(ctx, engine, namespace))
		expectError[*apply.ConflictError](err)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed"}))
	})

	It("may be of a kind that an earlier one defines", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		things := "things-" + namespace
		definition := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + things + `.release.test
spec:
  group: release.test
  names: {kind: Thing` + namespace + `, plural: ` + things + `}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
		thing := "apiVersion: release.test/v1\nkind: Thing" + namespace + "\nmetadata:\n  name: mine\n"

		DeferCleanup(func(ctx SpecContext) { run(ctx, "kubectl", "delete", "crd", things+".release.test") })

		_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", definition, thing))
		expectError[*apply.UnknownKindError](err)

		spec := specOf(namespace, "1.0.0", ordered(-10, definition), thing)
		mustApply(ctx, engine, spec)
		Expect(newest(ctx, engine, namespace).Staged()).To(BeTrue())

		Eventually(func() error { return advance(ctx, engine, namespace) }).Should(Succeed())
		Expect(run(ctx, "kubectl", "get", things+".release.test", "-n", namespace, "-o", "name")).To(ContainSubstring("mine"))

		record, err := engine.Read(ctx, releaseIn(namespace), newest(ctx, engine, namespace))
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Keys()).To(ContainElement(And(HaveField("Name", "mine"), HaveField("Namespace", namespace))))
	})

	Describe("are deleted in reverse order", func() {
		var (
			namespace string
			engine    *release.Engine
		)

		// The wave of the ConfigMap c is held by a finalizer, and two come before it.
		BeforeEach(func(ctx SpecContext) {
			namespace, engine = newNamespace(ctx), newEngine("one")
			Expect(install(ctx, engine, first(namespace))).To(Succeed())
			run(ctx, "kubectl", "patch", "configmap", "c", "-n", namespace, "--type=merge",
				"-p", `{"metadata":{"finalizers":["release.test/held"]}}`)
		})

		expectHeld := func(ctx context.Context, err error) {
			GinkgoHelper()
			Expect(expectError[*apply.RemainingError](err).Objects).To(ConsistOf(HaveField("Object.Name", "c")))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("a", "b", "c"))
		}
		expectOthersGone := func(ctx context.Context) {
			GinkgoHelper()
			Expect(configMaps(ctx, namespace)).To(ConsistOf("c"))
			run(ctx, "kubectl", "patch", "configmap", "c", "-n", namespace, "--type=merge",
				"-p", `{"metadata":{"finalizers":null}}`)
		}

		It("or at once, with the release", func(ctx SpecContext) {
			_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
			expectHeld(ctx, err)

			Expect(uninstall(ctx, engine, releaseIn(namespace), 1, true)).Error().NotTo(HaveOccurred())
			expectOthersGone(ctx)
		})

		It("or at once, without records", func(ctx SpecContext) {
			run(ctx, "kubectl", "delete", "secrets", "--all", "-n", namespace)
			_, err := uninstall(ctx, engine, releaseIn(namespace), 0, false)
			expectHeld(ctx, err)

			Expect(uninstall(ctx, engine, releaseIn(namespace), 0, true)).Error().NotTo(HaveOccurred())
			expectOthersGone(ctx)
		})
	})

	It("are refused without changes if an order is invalid", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", ordered(32768, configMap("a", "")), configMap("b", "")))
		Expect(expectError[*problem.Error](err)).To(MatchError(
			ContainSubstring("the annotation capstan.dev/apply-order of ConfigMap a must be an integer")))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(engine.Observe(ctx, releaseIn(namespace))).To(HaveField("Revisions", BeEmpty()))
	})

	It("keep the replicas of an object whose autoscaler comes with a later one", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		Expect(install(ctx, engine, specOf(namespace, "1.0.0", ordered(1, deployment("manager", "1"))))).To(Succeed())
		run(ctx, "kubectl", "scale", "deployment", "manager", "-n", namespace, "--replicas=3")

		autoscaler := "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: manager\n" +
			"spec:\n  maxReplicas: 9\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: manager}\n"
		withoutReplicas := strings.Replace(deployment("manager", "1"), "replicas: 1", "", 1)
		Expect(install(ctx, engine, specOf(namespace, "1.1.0", configMap("first", ""),
			ordered(1, withoutReplicas), ordered(2, autoscaler)))).To(Succeed())
		Expect(getDeployment(ctx, namespace, "manager").Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	})

	// A process is killed after each write, those between two waves included.
	It("are completed by the successor of a process that is killed", func(ctx SpecContext) {
		for n := 1; ; n++ {
			namespace := newNamespace(ctx)
			Expect(install(ctx, newEngine("predecessor"), first(namespace))).To(Succeed())

			victim, alive := killedAfter(n)
			err := install(ctx, victim, second(namespace))
			By(fmt.Sprintf("recovering from %v after write %d: %v", history(ctx, namespace), n, err))

			successor := newImpatientEngine()

			Eventually(func() error { return install(ctx, successor, second(namespace)) }).Should(Succeed())
			Expect(values(ctx, namespace)).To(Equal(map[string]string{"a": "2", "b": "2", "c": "2", "added": "2"}))
			Expect(newest(ctx, successor, namespace)).To(And(
				HaveField("Status", v1alpha2.RevisionDeployed), HaveField("Staged()", false)))

			if alive() {
				Expect(n).To(BeNumerically(">", 10), "each of the four waves writes its object and the revision")
				return
			}
		}
	})
})
