package release_test

import (
	"errors"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("When a release cannot be made", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	It(
		"says which object the API server refused and why, leaves the rest as it was, and recovers once it is mended",
		func(ctx SpecContext) {
			mustApply(
				ctx,
				engine,
				desired(namespace, chartOf("1.0.0", configMap("dropped", ""), deployment("manager", "2")), nil),
			)
			before, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())

			broken := desired(namespace, chartOf("1.1.0", configMap("brought", ""), deployment("manager", "-1")), nil)
			result, err := apply(ctx, engine, broken)

			var rejected *release.RejectedError
			Expect(errors.As(err, &rejected)).To(BeTrue(), "%v", err)
			Expect(
				err,
			).To(MatchError(ContainSubstring("the API server refused Deployment " + namespace + "/manager: spec.replicas: must be greater than or equal to 0")))
			Expect(apierrors.IsInvalid(err)).To(BeTrue())
			Expect(result.Revision).To(Equal(2))
			Expect(result.Status).To(Equal(release.StatusFailed))
			Expect(stateOf(ctx, engine, broken).Condition).To(Equal(release.Failed))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("dropped", "brought"))
			after, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(after.UID).To(Equal(before.UID))
			Expect(after.Spec).To(Equal(before.Spec))

			By("pruning, with the next revision, what any of the earlier ones brought")
			mustApply(ctx, engine, desired(namespace, chartOf("1.2.0", deployment("manager", "3")), nil))
			Expect(configMaps(ctx, namespace)).To(BeEmpty())
			Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		},
	)

	It("prunes what a chain of failed installs has brought", func(ctx SpecContext) {
		for _, brought := range []string{"first", "second"} {
			_, err := apply(
				ctx,
				engine,
				desired(namespace, chartOf("1.0.0", configMap(brought, ""), deployment("manager", "-1")), nil),
			)
			Expect(err).To(HaveOccurred())
		}

		Expect(configMaps(ctx, namespace)).To(ConsistOf("first", "second"))
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", deployment("manager", "1")), nil))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed", "2 failed", "3 deployed"}))
	})

	It("takes back what a failed revision had changed", func(ctx SpecContext) {
		withData := func(data string) string {
			return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata: {" + data + "}\n"
		}
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", withData("a: a, b: b")), nil))
		_, err := apply(
			ctx,
			engine,
			desired(namespace, chartOf("1.1.0", withData("a: a, c: c"), deployment("manager", "-1")), nil),
		)
		Expect(err).To(HaveOccurred())
		mustApply(ctx, engine, desired(namespace, chartOf("1.2.0", withData("a: a")), nil))
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(Equal(map[string]string{"a": "a"}))
	})

	It("records and applies nothing if values, templates or kinds are wrong, and shows no value", func(ctx SpecContext) {
		c := chartOf("1.0.0", configMap("config", "{{ .Values.variables.TOKEN }}"))
		c.Files = append(c.Files, chart.File{Name: chart.SchemaFile, Data: []byte(
			`{"properties": {"variables": {"required": ["TOKEN", "REGION"], "properties": {"TOKEN": {"pattern": "^[0-9]+$"}}}}}`,
		)})
		values := map[string]any{"variables": map[string]any{"TOKEN": "hunter2"}}
		_, err := apply(ctx, engine, desired(namespace, c, values))

		var render *release.RenderError
		Expect(errors.As(err, &render)).To(BeTrue(), "%v", err)
		Expect(
			err,
		).To(MatchError(And(ContainSubstring("the values do not fit its schema: at '/variables': missing property 'REGION'"), ContainSubstring("does not match pattern"), Not(ContainSubstring("hunter2")))))

		for _, template := range []string{"{{ fail \"no hunter2 here\" }}", "kind: [{{ .Values.variables.TOKEN }}", "not: an object"} {
			_, err = apply(ctx, engine, desired(namespace, chartOf("1.0.0", template), values))
			Expect(errors.As(err, &render)).To(BeTrue(), "%v", err)
			Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
		}

		_, err = apply(
			ctx,
			engine,
			desired(namespace, chartOf("1.0.0", configMap("config", ""), custom("nowhere", "x")), nil),
		)

		var unknown *release.UnknownKindError
		Expect(errors.As(err, &unknown)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("Kindnowhere")))

		Expect(history(ctx, namespace)).To(BeEmpty())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})

	It("finds kinds that have appeared since the API was discovered", func(ctx SpecContext) {
		d := desired(namespace, chartOf("1.0.0", custom("latecomers", "x")), nil)
		_, err := apply(ctx, engine, d)
		Expect(err).To(HaveOccurred())
		kubectlApply(ctx, namespace, crd("latecomers"))
		run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/latecomers.release.test")
		Eventually(func() error { _, err := apply(ctx, engine, d); return err }).Should(Succeed())
	})

	It("does not take a kind for gone whose API server is down", func(ctx SpecContext) {
		kubectlApply(ctx, namespace, `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.down.release.test}
spec: {group: down.release.test, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
  service: {name: nowhere, namespace: `+namespace+`}}
`)
		DeferCleanup(func(ctx SpecContext) { run(ctx, "kubectl", "delete", "apiservice", "v1.down.release.test") })

		d := desired(
			namespace,
			chartOf("1.0.0", "apiVersion: down.release.test/v1\nkind: Silent\nmetadata: {name: x}\n"),
			nil,
		)

		Eventually(func() error { _, err := apply(ctx, newEngine("one"), d); return err }).Should(
			MatchError(ContainSubstring("the API down.release.test/v1 does not answer")))
	})

	It("adopts what belongs to nobody, and changes no more of it than it must", func(ctx SpecContext) {
		kubectlApply(
			ctx,
			namespace,
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n  labels: {clusterctl.cluster.x-k8s.io: \"\"}\ndata: {key: old, other: stays}\n",
		)
		result := mustApply(
			ctx,
			engine,
			desired(namespace, chartOf("1.0.0", configMap("config", "new"), configMap("fresh", "")), nil),
		)
		Expect(result.Adopted).To(ConsistOf(HaveField("Name", "config")))

		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(Equal(map[string]string{"key": "new", "other": "stays"}))
		Expect(cm.Labels).To(HaveKey("clusterctl.cluster.x-k8s.io"))
		Expect(cm.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", name))
	})

	It("leaves what belongs to another release alone, and everything else too", func(ctx SpecContext) {
		other := newNamespace(ctx)
		role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: " + other + "-shared\nrules: []\n"
		mustApply(ctx, engine, desired(other, chartOf("1.0.0", role), nil))
		_, err := apply(ctx, engine, desired(namespace, chartOf("1.0.0", role, configMap("config", "")), nil))

		var conflict *release.ConflictError
		Expect(errors.As(err, &conflict)).To(BeTrue(), "%v", err)
		Expect(
			err,
		).To(MatchError(ContainSubstring("ClusterRole " + other + "-shared belongs to release " + other + "/" + name + " and cannot belong to release " + namespace + "/" + name)))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("replaces an object whose change is of an immutable field, and that object alone", func(ctx SpecContext) {
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("config", ""), deployment("former", "1")), nil))
		before, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		result := mustApply(
			ctx,
			engine,
			desired(namespace, chartOf("1.1.0", configMap("config", ""), deployment("manager", "1")), nil),
		)
		Expect(result.Replaced).To(ConsistOf(HaveField("Kind", "Deployment")))

		after, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))

		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "manager"}))
	})

	It("names the object that could not be pruned, and prunes it when it can", func(ctx SpecContext) {
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("kept", ""), configMap("guarded", "")), nil))
		policy := "delete-" + namespace
		kubectlApply(ctx, namespace, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+policy+`}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]}
  matchConditions: [{name: here, expression: "request.namespace == '`+namespace+`'"}]
  validations: [{expression: "false", message: it is guarded}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+policy+`}
spec: {policyName: `+policy+`, validationActions: [Deny]}
`)
		Eventually(func() error {
			return client.CoreV1().
				ConfigMaps(namespace).
				Delete(ctx, "guarded", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}).ShouldNot(Succeed())

		d := desired(namespace, chartOf("1.1.0", configMap("kept", "")), nil)
		_, err := apply(ctx, engine, d)

		var remove *release.RemoveError
		Expect(errors.As(err, &remove)).To(BeTrue(), "%v", err)
		Expect(
			err,
		).To(MatchError(And(ContainSubstring("ConfigMap "+namespace+"/guarded could not be deleted"), ContainSubstring("it is guarded"))))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed", "2 failed"}))

		run(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", policy)
		Eventually(func() error { _, err := apply(ctx, engine, d); return err }).Should(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept"))
	})

	It("recovers from a record that cannot be read, without destroying it", func(ctx SpecContext) {
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("config", "1"), configMap("dropped", "")), nil))
		d := desired(namespace, chartOf("1.1.0", configMap("config", "2")), nil)
		mustApply(ctx, engine, d)
		spoil(ctx, namespace, 2)

		_, err := engine.Read(ctx, namespace, name, stateOf(ctx, engine, d).Revision)

		var corrupt *release.CorruptError
		Expect(errors.As(err, &corrupt)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(namespace + "/" + secretOf(2))))
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Corrupt))

		Expect(mustApply(ctx, engine, d).Revision).To(Equal(3))
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.InSync))
		Expect(run(ctx, "helm", "list", "-n", namespace)).To(MatchRegexp(name + `\s.*\s3\s.*deployed`))
		spoiled, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(2), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(spoiled.Data["release"]).To(Equal([]byte("spoiled")))
	})

	It("recovers even if no record can be read", func(ctx SpecContext) {
		d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
		mustApply(ctx, engine, d)
		spoil(ctx, namespace, 1)
		_, err := engine.Uninstall(ctx, namespace, name)

		var corrupt *release.CorruptError
		Expect(errors.As(err, &corrupt)).To(BeTrue(), "%v", err)

		d = desired(namespace, chartOf("1.1.0", configMap("config", "2")), nil)
		Expect(mustApply(ctx, engine, d).Revision).To(Equal(2))
		_, err = engine.Uninstall(ctx, namespace, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("says what holds an object that is being deleted", func(ctx SpecContext) {
		kubectlApply(
			ctx,
			namespace,
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [release.test/hold]\n",
		)
		Expect(client.CoreV1().ConfigMaps(namespace).Delete(ctx, "held", metav1.DeleteOptions{})).To(Succeed())
		d := desired(namespace, chartOf("1.0.0", configMap("held", "")), nil)
		_, err := apply(ctx, engine, d)

		var unavailable *release.UnavailableError
		Expect(errors.As(err, &unavailable)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("release.test/hold")))
		run(
			ctx,
			"kubectl",
			"patch",
			"configmap",
			"held",
			"-n",
			namespace,
			"--type=merge",
			"-p",
			`{"metadata":{"finalizers":null}}`,
		)
		mustApply(ctx, engine, d)
	})

	It("leaves no goroutine behind", func(ctx SpecContext) {
		broken := desired(namespace, chartOf("1.0.0", deployment("manager", "-1")), nil)
		_, err := apply(ctx, engine, broken)
		Expect(err).To(HaveOccurred())

		before := runtime.NumGoroutine()

		for range 10 {
			_, err := apply(ctx, engine, broken)
			Expect(err).To(HaveOccurred())
		}

		Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", before+2)) // connections come and go
	})
})

// spoil damages the record of a revision.
func spoil(ctx SpecContext, namespace string, revision int) {
	GinkgoHelper()

	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(revision), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	secret.Data = map[string][]byte{"release": []byte("spoiled")}
	_, err = client.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
