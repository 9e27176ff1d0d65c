package release_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

var _ = Describe("Drift", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "value"), secret, serviceAccount("manager"),
			clusterRole, clusterRoleBinding, aggregatedRole, service, webhooks, deployment("manager", "2"), varied))
	})
	patch := func(ctx SpecContext, kind, name, patch string) {
		GinkgoHelper()
		run(ctx, "kubectl", "patch", kind, strings.ReplaceAll(name, "NS", namespace), "-n", namespace, "--type=strategic",
			"-p", patch)
	}
	found := func(ctx SpecContext) []string {
		GinkgoHelper()

		var texts []string
		for _, d := range compare(ctx, engine, namespace).Differences {
			texts = append(texts, strings.ReplaceAll(d.String(), namespace, "NS"))
		}

		return texts
	}
	correct := func(ctx SpecContext) release.Result {
		GinkgoHelper()

		differences := compare(ctx, engine, namespace).Differences
		result, err := engine.Correct(ctx, releaseIn(namespace), confirmed(namespace, 1), differences)
		Expect(err).NotTo(HaveOccurred())

		return result
	}

	It("is not found in what was just applied, in whatever notation", func(ctx SpecContext) {
		comparison := compare(ctx, engine, namespace)
		Expect(comparison.Differences).To(BeEmpty())
		Expect(comparison.InSync).To(HaveLen(10))
	})

	DescribeTable(
		"of an object is found, named without values, and corrected without a new revision",
		func(ctx SpecContext, kind, object, change string, expected string) {
			if change == "" {
				run(ctx, "kubectl", "delete", kind, strings.ReplaceAll(object, "NS", namespace), "-n", namespace)
			} else {
				patch(ctx, kind, object, change)
			}

			Expect(found(ctx)).To(ConsistOf(expected))
			Expect(correct(ctx).Applied()).To(HaveLen(1))
			Expect(found(ctx)).To(BeEmpty())
			Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
		},
		Entry("scaled", "deployment", "manager", `{"spec":{"replicas":0}}`, "Deployment NS/manager: /spec/replicas"),
		Entry("with another image and argument", "deployment", "manager",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"other"}],"serviceAccountName":"other"}}}}`,
			"Deployment NS/manager: /spec/template/spec/containers/0/image, /spec/template/spec/serviceAccountName"),
		Entry("without a variable", "deployment", "varied",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","env":[{"name":"A","$patch":"delete"}]}]}}}}`,
			"Deployment NS/varied: /spec/template/spec/containers/0/env"),
		Entry("without a selector", "service", "webhook",
			`{"spec":{"selector":null}}`,
			"Service NS/webhook: /spec/selector"),
		Entry("with other permissions", "clusterrole", "NS-role", `{"rules":[]}`, "ClusterRole NS-role: /rules"),
		Entry("with another password", "secret", "credentials",
			`{"stringData":{"password":"sesame"}}`,
			"Secret NS/credentials: /data/password"),
		Entry("without the release's annotation", "configmap", "config",
			`{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`,
			"ConfigMap NS/config: /metadata/annotations/meta.helm.sh~1release-name"),
		Entry("a deleted role", "clusterrole", "NS-role", "", "ClusterRole NS-role is missing"),
		Entry("deleted webhooks", "mutatingwebhookconfiguration", "NS-webhooks",
			"",
			"MutatingWebhookConfiguration NS-webhooks is missing"),
		Entry("a deleted binding", "clusterrolebinding", "NS-binding", "", "ClusterRoleBinding NS-binding is missing"),
	)

	DescribeTable(
		"ignores what other programs may change:",
		func(ctx SpecContext, kind, object, change string) {
			patch(ctx, kind, object, strings.ReplaceAll(change, "NS", namespace))
			Expect(found(ctx)).To(BeEmpty())
		},
		Entry("an injected certificate", "mutatingwebhookconfiguration", "NS-webhooks",
			`{"webhooks":[{"name":"default.release.test","clientConfig":{"caBundle":"b3RoZXI="}}]}`),
		Entry("labels and annotations", "deployment", "manager",
			`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`),
		Entry("an additional container and volume", "deployment", "manager",
			`{"spec":{"template":{"metadata":{"annotations":{"injected":"yes"}},`+
				`"spec":{"containers":[{"name":"sidecar","image":"s"}],"volumes":[{"name":"v","emptyDir":{}}]}}}}`),
		Entry("an additional first container", "deployment", "manager",
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"sidecar"},{"name":"manager"}],`+
				`"containers":[{"name":"sidecar","image":"s"}]}}}}`),
		Entry("an additional variable", "deployment", "varied",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","env":[{"name":"C","value":"3"}]}]}}}}`),
		Entry("aggregated rules", "clusterrole", "NS-aggregated",
			`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`),
		Entry("an object with the annotation that excludes it", "deployment", "manager",
			`{"metadata":{"annotations":{"capstan.dev/drift":"Ignore"}},"spec":{"replicas":0}}`),
	)

	It("ignores the replicas of an autoscaled object, but not its other fields", func(ctx SpecContext) {
		run(ctx, "kubectl", "autoscale", "deployment", "manager", "-n", namespace, "--min=1", "--max=9")
		patch(ctx, "deployment", "manager", `{"spec":{"replicas":7}}`)
		Expect(found(ctx)).To(BeEmpty())
		patch(ctx, "deployment", "manager",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"other"}]}}}}`)
		Expect(found(ctx)).To(ConsistOf("Deployment NS/manager: /spec/template/spec/containers/0/image"))
		correct(ctx)
		d := getDeployment(ctx, namespace, "manager")
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(7))
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("example.org/manager:v1"))
	})

	It("is corrected without changing an injected certificate", func(ctx SpecContext) {
		patch(ctx, "mutatingwebhookconfiguration", "NS-webhooks",
			`{"webhooks":[{"name":"default.release.test","failurePolicy":"Fail","clientConfig":{"caBundle":"b3RoZXI="}}]}`)
		Expect(found(ctx)).To(ConsistOf("MutatingWebhookConfiguration NS-webhooks: /webhooks/0/failurePolicy"))
		correct(ctx)
		w, err := client.AdmissionregistrationV1().
			MutatingWebhookConfigurations().
			Get(ctx, namespace+"-webhooks", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(w.Webhooks[0].ClientConfig.CABundle)).To(Equal("other"))
	})

	It("in an immutable field is corrected by replacing the object", func(ctx SpecContext) {
		run(ctx, "kubectl", "delete", "deployment", "manager", "-n", namespace)
		kubectlApply(ctx, namespace, deployment("other", "2"))
		Expect(found(ctx)).To(ConsistOf(ContainSubstring("Deployment NS/manager: ")))
		Expect(correct(ctx).With(apply.Replaced)).To(HaveLen(1))
		d := getDeployment(ctx, namespace, "manager")
		Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "manager"}))
		Expect(found(ctx)).To(BeEmpty())
	})

	It("is reported but not corrected if the object has another owner or is being deleted", func(ctx SpecContext) {
		patch(ctx, "configmap", "config",
			`{"data":{"key":"theirs"},"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
		patch(ctx, "service", "webhook", `{"metadata":{"finalizers":["release.test/hold"]}}`)
		DeferCleanup(patch, "service", "webhook", `{"metadata":{"finalizers":null}}`)
		run(ctx, "kubectl", "delete", "service", "webhook", "-n", namespace, "--wait=false")
		Expect(found(ctx)).To(ConsistOf(
			"ConfigMap NS/config: it belongs to release NS/other",
			"Service NS/webhook: it is being deleted, but its finalizers hold it: release.test/hold"))
		Expect(correct(ctx).Applied()).To(BeEmpty())
		cm := getConfigMap(ctx, namespace, "config")
		Expect(cm.Data).To(HaveKeyWithValue("key", "theirs"))
	})

	It("is not a change that a webhook or policy enforces", func(ctx SpecContext) {
		policy := "replicas-" + namespace
		kubectlApply(ctx, namespace, `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: `+policy+`}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]
  matchConditions: [{name: here, expression: "request.namespace == '`+namespace+`'"}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{spec: Object.spec{replicas: 5}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: `+policy+`}
spec: {policyName: `+policy+`}
`)
		DeferCleanup(func(ctx SpecContext) {
			run(ctx, "kubectl", "delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", policy)
		})
		Eventually(func(g Gomega) {
			patch(ctx, "deployment", "manager", `{"metadata":{"labels":{"touched":"yes"}}}`)
			d, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(5))
			patch(ctx, "deployment", "manager", `{"metadata":{"labels":{"touched":null}}}`)
		}).Should(Succeed())
		Expect(found(ctx)).To(BeEmpty())
	})

	It("is found beside an object whose kind is no longer served", func(ctx SpecContext) {
		plural := "lost" + namespace
		establishCRD(ctx, namespace, plural)
		mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", "value"), custom(plural, "x")))

		run(ctx, "kubectl", "delete", "crd", plural+".release.test")
		patch(ctx, "configmap", "config", `{"data":{"key":"theirs"}}`)

		engine = newEngine("one")
		record, err := engine.Read(ctx, releaseIn(namespace), newest(ctx, engine, namespace))
		Expect(err).NotTo(HaveOccurred())

		comparison, err := engine.Compare(ctx, releaseIn(namespace), record.Objects)
		expectError[*apply.UnknownKindError](err)
		Expect(comparison.Differences).To(ConsistOf(HaveField("Object.Name", "config")))
	})

	It("names the object and the reason if it cannot be corrected", func(ctx SpecContext) {
		patch(ctx, "serviceaccount", "manager", `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`)
		patch(ctx, "configmap", "config", `{"data":{"key":"theirs"}}`)
		differences := compare(ctx, newRefusedEngine("configmaps", http.MethodPatch), namespace).Differences
		engine = newRefusedEngine("configmaps", http.MethodPatch)
		result, err := engine.Correct(ctx, releaseIn(namespace), confirmed(namespace, 1), differences[:1])
		Expect(differences).To(HaveLen(2))
		expectError[*apply.RejectedError](err)
		Expect(err).To(MatchError(ContainSubstring("ConfigMap " + namespace + "/config")))
		Expect(result.Applied()).To(BeEmpty())
	})

	It("is not corrected while the release is locked, or for an old revision", func(ctx SpecContext) {
		patch(ctx, "deployment", "manager", `{"spec":{"replicas":0}}`)
		differences := compare(ctx, engine, namespace).Differences
		_, err := engine.Correct(ctx, releaseIn(namespace), confirmed(namespace, 7), differences)
		Expect(err).To(MatchError(storage.ErrChanged))

		// as another program that works on the release
		label := func(status string) {
			labels := `{"metadata":{"labels":{"status":"` + status + `","capstan.dev/revision":null}}}`
			_, err := client.CoreV1().
				Secrets(namespace).
				Patch(ctx, secretOf(1), types.MergePatchType, []byte(labels), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		label("pending-upgrade")

		_, err = engine.Correct(ctx, releaseIn(namespace), confirmed(namespace, 1), differences)
		locked := expectError[*problem.Error](err)
		Expect(locked.Until).To(BeTemporally(">", time.Now()))
		label("deployed")
		Expect(correct(ctx).Applied()).To(HaveLen(1))
	})

	It("is found with one request for each object, and without a write", func(ctx SpecContext) {
		var gets, writes, dryRuns atomic.Int64

		counting := newEngine("one", func(c *rest.Config) {
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					switch {
					case r.Method != http.MethodGet && r.URL.Query().Has("dryRun"):
						dryRuns.Add(1)
					case r.Method != http.MethodGet:
						writes.Add(1)
					case strings.Contains(r.URL.Path, "/secrets") && !strings.HasSuffix(r.URL.Path, "credentials"),
						r.URL.Path == "/api",
						strings.HasPrefix(r.URL.Path, "/apis") && strings.Count(r.URL.Path, "/") < 4:
					default:
						gets.Add(1)
					}

					return rt.RoundTrip(r)
				})
			})
		})

		patch(ctx, "deployment", "manager", `{"spec":{"replicas":0}}`)
		Expect(compare(ctx, counting, namespace).Differences).To(HaveLen(1))
		Expect(gets.Load()).To(BeNumerically("<=", 10+1+2), "objects, autoscalers and discovery")
		Expect(writes.Load()).To(BeZero())
		Expect(dryRuns.Load()).To(BeNumerically("<=", 3), "the difference, and two in another notation")
	})
})

// compare compares the newest revision with the cluster.
func compare(ctx context.Context, e *release.Engine, namespace string) apply.Comparison {
	GinkgoHelper()

	history, err := e.Observe(ctx, releaseIn(namespace))
	Expect(err).NotTo(HaveOccurred())

	newest, _ := history.Newest()
	record, err := e.Read(ctx, releaseIn(namespace), newest)
	Expect(err).NotTo(HaveOccurred())
	comparison, err := e.Compare(ctx, releaseIn(namespace), record.Objects)
	Expect(err).NotTo(HaveOccurred())

	return comparison
}
