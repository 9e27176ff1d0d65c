package release_test

import (
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

var _ = Describe("A release with problems", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	It("names the object that the API server refused and why, and recovers once it is fixed", func(ctx SpecContext) {
		rejectIngresses(ctx, namespace)
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("dropped", ""), deployment("manager", "2")))
		before := getDeployment(ctx, namespace, "manager")

		broken := specOf(namespace, "1.1.0", configMap("brought", ""), deployment("manager", "2"), rejected)
		result, err := applySpec(ctx, engine, broken)
		expectError[*apply.RejectedError](err)
		Expect(err).To(MatchError(And(ContainSubstring("the API server refused Ingress "+namespace+"/refused: "),
			ContainSubstring("no Ingress is allowed here"))))
		Expect(result.Revision).To(Equal(2))
		Expect(result.Status).To(Equal(v1alpha2.RevisionFailed))
		Expect(observe(ctx, engine, broken).State).To(Equal(state.Failed))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("dropped", "brought"))
		after := getDeployment(ctx, namespace, "manager")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec).To(Equal(before.Spec))

		By("pruning, with the next revision, what any of the earlier ones brought")
		mustApply(ctx, engine, specOf(namespace, "1.2.0", deployment("manager", "3")))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
	})

	It("prunes the objects of several failed installs", func(ctx SpecContext) {
		rejectIngresses(ctx, namespace)

		for _, brought := range []string{"first", "second"} {
			_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", configMap(brought, ""), rejected))
			Expect(err).To(HaveOccurred())
		}

		Expect(configMaps(ctx, namespace)).To(ConsistOf("first", "second"))
		mustApply(ctx, engine, specOf(namespace, "1.0.0", deployment("manager", "1")))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed", "2 failed", "3 deployed"}))
	})

	It("reverts what a failed revision changed", func(ctx SpecContext) {
		withData := func(data string) string {
			return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata: {" + data + "}\n"
		}
		mustApply(ctx, engine, specOf(namespace, "1.0.0", withData("a: a, b: b")))
		_, err := applySpec(ctx, engine, specOf(namespace, "1.1.0", withData("a: a, c: c"), deployment("manager", "-1")))
		Expect(err).To(HaveOccurred())
		mustApply(ctx, engine, specOf(namespace, "1.2.0", withData("a: a")))
		cm := getConfigMap(ctx, namespace, "config")
		Expect(cm.Data).To(Equal(map[string]string{"a": "a"}))
	})

	It("stores and applies nothing if values, templates or kinds are wrong, and shows no value", func(ctx SpecContext) {
		c := chartOf("1.0.0", configMap("config", "{{ .Values.variables.TOKEN }}"))
		c.Files = append(c.Files, chart.File{Name: chart.SchemaFile, Data: []byte(
			`{"properties": {"variables": {"required": ["TOKEN", "REGION"], ` +
				`"properties": {"TOKEN": {"pattern": "^[0-9]+$"}}}}}`,
		)})
		values := map[string]any{"variables": map[string]any{"TOKEN": "hunter2"}}
		_, err := applySpec(ctx, engine, newSpec(namespace, c, values))
		expectError[*problem.Error](err)
		Expect(err).To(MatchError(And(
			ContainSubstring("the values do not match its schema: at '/variables': missing property 'REGION'"),
			ContainSubstring("does not match pattern"),
			Not(ContainSubstring("hunter2")),
		)))

		for _, template := range []string{
			"{{ fail \"no hunter2 here\" }}",
			"kind: [{{ .Values.variables.TOKEN }}",
			"not: an object",
		} {
			_, err = applySpec(ctx, engine, newSpec(namespace, chartOf("1.0.0", template), values))
			expectError[*problem.Error](err)
			Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
		}

		_, err = applySpec(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), custom("nowhere", "x")))
		expectError[*apply.UnknownKindError](err)
		Expect(err).To(MatchError(ContainSubstring("Kindnowhere")))

		Expect(history(ctx, namespace)).To(BeEmpty())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})

	It("finds kinds that were added after the API was discovered", func(ctx SpecContext) {
		spec := specOf(namespace, "1.0.0", custom("latecomers", "x"))
		_, err := applySpec(ctx, engine, spec)
		Expect(err).To(HaveOccurred())
		establishCRD(ctx, namespace, "latecomers")
		Eventually(func() error { _, err := applySpec(ctx, engine, spec); return err }).Should(Succeed())
	})

	It("does not consider a kind unknown because its API server is down", func(ctx SpecContext) {
		kubectlApply(ctx, namespace, `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.down.release.test}
spec: {group: down.release.test, version: v1, groupPriorityMinimum: 100, versionPriority: 100,
  insecureSkipTLSVerify: true, service: {name: nowhere, namespace: `+namespace+`}}
`)
		DeferCleanup(func(ctx SpecContext) { run(ctx, "kubectl", "delete", "apiservice", "v1.down.release.test") })

		spec := specOf(namespace, "1.0.0", "apiVersion: down.release.test/v1\nkind: Silent\nmetadata: {name: x}\n")

		Eventually(func() error { _, err := applySpec(ctx, newEngine("one"), spec); return err }).Should(
			MatchError(ContainSubstring("the API down.release.test/v1 does not respond")))
	})

	It("adopts objects without an owner, changing only its own fields", func(ctx SpecContext) {
		kubectlApply(ctx, namespace,
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n  labels: {clusterctl.cluster.x-k8s.io: \"\"}\n"+
				"data: {key: old, other: stays}\n")
		result := mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "new"), configMap("fresh", "")))
		Expect(result.Adopted()).To(ConsistOf(HaveField("Name", "config")))

		cm := getConfigMap(ctx, namespace, "config")
		Expect(cm.Data).To(Equal(map[string]string{"key": "new", "other": "stays"}))
		Expect(cm.Labels).To(HaveKey("clusterctl.cluster.x-k8s.io"))
		Expect(cm.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", name))
	})

	It("changes nothing if an object belongs to another release", func(ctx SpecContext) {
		other := newNamespace(ctx)
		role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: " + other +
			"-shared\nrules: []\n"
		mustApply(ctx, engine, specOf(other, "1.0.0", role))
		_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", role, configMap("config", "")))
		expectError[*apply.ConflictError](err)
		Expect(err).To(MatchError(ContainSubstring("ClusterRole " + other + "-shared belongs to release " + other + "/" +
			name + ", so release " + namespace + "/" + name + " does not adopt it")))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("replaces only the objects whose immutable fields change", func(ctx SpecContext) {
		spec := func(version, selector, role, image string) release.Spec {
			binding := "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: b\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + role + "}\n"
			job := "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n" +
				"spec: {template: {spec: {restartPolicy: Never, containers: [{name: j, image: " + image + "}]}}}\n"

			return specOf(namespace, version, configMap("config", ""), deployment(selector, "1"), binding, job)
		}

		mustApply(ctx, engine, spec("1.0.0", "former", "one", "example.org/one"))
		before := getConfigMap(ctx, namespace, "config")

		result := mustApply(ctx, engine, spec("1.1.0", "manager", "two", "example.org/two"))
		Expect(result.With(apply.Replaced)).To(ConsistOf(HaveField("Object.Kind", "Deployment"),
			HaveField("Object.Kind", "RoleBinding"), HaveField("Object.Kind", "Job")))

		after := getConfigMap(ctx, namespace, "config")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))

		d := getDeployment(ctx, namespace, "manager")
		Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "manager"}))
	})

	It("does not replace an object whose change a policy refuses", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", deployment("manager", "1")))
		before := getDeployment(ctx, namespace, "manager")

		deployments := schema.GroupResource{Group: appsv1.GroupName, Resource: "deployments"}
		deny(ctx, namespace, admissionv1.Update, deployments, "false", "it is guarded")

		Eventually(func() error {
			return command(ctx, "kubectl", "patch", "deployment", "manager", "-n", namespace, "--dry-run=server",
				"-p", `{"spec":{"replicas":2}}`).Run()
		}).ShouldNot(Succeed())

		_, err := applySpec(ctx, engine, specOf(namespace, "1.1.0", deployment("manager", "2")))
		expectError[*apply.DryRunError](err)
		Expect(err).To(MatchError(ContainSubstring("it is guarded")))
		Expect(getDeployment(ctx, namespace, "manager").UID).To(Equal(before.UID))
	})

	It("names the object that could not be pruned, and prunes it later", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("kept", ""), configMap("guarded", "")))
		deny(ctx, namespace, admissionv1.Delete, schema.GroupResource{Resource: "configmaps"}, "false", "it is guarded")
		Eventually(func() error {
			return client.CoreV1().
				ConfigMaps(namespace).
				Delete(ctx, "guarded", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}).ShouldNot(Succeed())

		spec := specOf(namespace, "1.1.0", configMap("kept", ""))
		mustApply(ctx, engine, spec)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))

		again := func() error { return prune(ctx, engine, namespace, newest(ctx, engine, namespace)) }
		err := again()
		expectError[*apply.RemoveError](err)
		Expect(err).To(MatchError(And(ContainSubstring("ConfigMap "+namespace+"/guarded could not be deleted"),
			ContainSubstring("it is guarded"))))

		run(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", namespace)
		Eventually(again).Should(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept"))
	})

	It("names the object that a finalizer holds until it is gone", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("kept", ""), configMap("held", "")))

		finalizer := func(value string) {
			_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, "held", types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":`+value+`}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}

		finalizer(`["example.com/hold"]`)

		spec := specOf(namespace, "1.1.0", configMap("kept", ""))
		mustApply(ctx, engine, spec)

		revision := observe(ctx, engine, spec).Revision
		Expect(left(ctx, namespace)).To(ConsistOf(HaveField("Name", "held")))

		err := prune(ctx, engine, namespace, revision)
		expectError[*apply.RemainingError](err)
		Expect(err).To(MatchError("ConfigMap " + namespace + "/held is being deleted, but its finalizers hold it: " +
			"example.com/hold"))
		Expect(left(ctx, namespace)).To(ConsistOf(HaveField("Name", "held")))

		// A version that has it again waits before anything is changed.
		_, err = applySpec(ctx, engine, specOf(namespace, "1.2.0", configMap("held", ""), configMap("kept", "changed")))
		expectError[*apply.UnavailableError](err)
		Expect(err).To(MatchError("ConfigMap " + namespace + "/held could not be applied for now: it is being deleted, but " +
			"its finalizers hold it: example.com/hold"))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
		Expect(getConfigMap(ctx, namespace, "kept").Data).To(Equal(map[string]string{"key": ""}))

		finalizer("null")
		Expect(prune(ctx, engine, namespace, revision)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept"))
		Expect(left(ctx, namespace)).To(BeEmpty())
	})

	It("recovers from an unreadable record without destroying it", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "1"), configMap("dropped", "")))
		spec := specOf(namespace, "1.1.0", configMap("config", "2"))
		mustApply(ctx, engine, spec)
		spoil(ctx, namespace, 2)

		observed := observe(ctx, engine, spec)
		_, err := engine.Read(ctx, releaseIn(namespace), observed.Revision)
		expectError[*storage.CorruptError](err)
		Expect(err).To(MatchError(ContainSubstring(namespace + "/" + secretOf(2))))

		result, err := applyObserved(ctx, engine, spec, observed)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Revision).To(Equal(3))
		Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
		Expect(run(ctx, "helm", "list", "-n", namespace)).To(MatchRegexp(name + `\s.*\s3\s.*deployed`))
		spoiled, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(2), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(spoiled.Data["release"]).To(Equal([]byte("spoiled")))
	})

	It("recovers even if all records are unreadable", func(ctx SpecContext) {
		spec := specOf(namespace, "1.0.0", configMap("config", "1"))
		mustApply(ctx, engine, spec)
		spoil(ctx, namespace, 1)

		spec = specOf(namespace, "1.1.0", configMap("config", "2"))
		Expect(mustApply(ctx, engine, spec).Revision).To(Equal(2))

		spoil(ctx, namespace, 2)
		_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("names the finalizers that hold an object", func(ctx SpecContext) {
		kubectlApply(ctx, namespace,
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [release.test/hold]\n")
		Expect(client.CoreV1().ConfigMaps(namespace).Delete(ctx, "held", metav1.DeleteOptions{})).To(Succeed())
		spec := specOf(namespace, "1.0.0", configMap("held", ""))
		_, err := applySpec(ctx, engine, spec)
		expectError[*apply.UnavailableError](err)
		Expect(err).To(MatchError(ContainSubstring("release.test/hold")))
		run(ctx, "kubectl", "patch", "configmap", "held", "-n", namespace, "--type=merge", "-p",
			`{"metadata":{"finalizers":null}}`)
		mustApply(ctx, engine, spec)
	})

	It("leaks no goroutines", func(ctx SpecContext) {
		broken := specOf(namespace, "1.0.0", deployment("manager", "-1"))
		_, err := applySpec(ctx, engine, broken)
		Expect(err).To(HaveOccurred())

		before := runtime.NumGoroutine()

		for range 10 {
			_, err := applySpec(ctx, engine, broken)
			Expect(err).To(HaveOccurred())
		}

		Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", before+2)) // connections come and go
	})
})

// spoil damages a revision.
func spoil(ctx SpecContext, namespace string, revision int) {
	GinkgoHelper()

	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(revision), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	secret.Data = map[string][]byte{"release": []byte("spoiled")}
	_, err = client.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
