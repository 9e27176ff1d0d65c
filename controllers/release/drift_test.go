package release_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/release"
)

const webhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: {{ .Release.Namespace }}-webhooks
webhooks:
- name: default.release.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig:
    caBundle: Cg==
    service: {name: webhook, namespace: {{ .Release.Namespace }}, path: /default}
  rules: [{apiGroups: [release.test], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
`

const aggregatedRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Namespace }}-aggregated
aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate-to: {{ .Release.Namespace }}}}]}
rules: []
`

const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: credentials\nstringData:\n  password: hunter2\n"

// varied has values that the API server writes in another way.
const varied = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: varied
spec:
  selector: {matchLabels: {app: varied}}
  template:
    metadata: {labels: {app: varied}}
    spec:
      containers:
      - name: manager
        image: example.org/manager:v1
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{name: http, containerPort: 8080}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: "0.1"}}
`

var _ = Describe("Drift", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
		mustApply(
			ctx,
			engine,
			desired(namespace, chartOf("1.0.0", configMap("config", "value"), secret, serviceAccount("manager"), clusterRole,
				clusterRoleBinding, aggregatedRole, service, webhooks, deployment("manager", "2"), varied), nil),
		)
	})
	patch := func(ctx SpecContext, kind, name, patch string) {
		GinkgoHelper()
		run(
			ctx,
			"kubectl",
			"patch",
			kind,
			strings.ReplaceAll(name, "NS", namespace),
			"-n",
			namespace,
			"--type=strategic",
			"-p",
			patch,
		)
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

		result, err := engine.Correct(ctx, namespace, name, 1, compare(ctx, engine, namespace).Differences)
		Expect(err).NotTo(HaveOccurred())

		return result
	}

	It("is not found in what was just applied, however the API server writes it", func(ctx SpecContext) {
		comparison := compare(ctx, engine, namespace)
		Expect(comparison.Differences).To(BeEmpty())
		Expect(comparison.Alike).To(HaveLen(10))
	})

	DescribeTable(
		"of an object is found, named without values, and corrected without a revision",
		func(ctx SpecContext, kind, object, change string, expected string) {
			if change == "" {
				run(ctx, "kubectl", "delete", kind, strings.ReplaceAll(object, "NS", namespace), "-n", namespace)
			} else {
				patch(ctx, kind, object, change)
			}

			Expect(found(ctx)).To(ConsistOf(expected))
			Expect(correct(ctx).Versions).To(HaveLen(1))
			Expect(found(ctx)).To(BeEmpty())
			Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
		},
		Entry("scaled", "deployment", "manager", `{"spec":{"replicas":0}}`, "Deployment NS/manager: /spec/replicas"),
		Entry(
			"with another image and argument",
			"deployment",
			"manager",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"other"}],"serviceAccountName":"other"}}}}`,
			"Deployment NS/manager: /spec/template/spec/containers/0/image, /spec/template/spec/serviceAccountName",
		),
		Entry(
			"without a value that it should have",
			"deployment",
			"varied",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","env":[{"name":"A","$patch":"delete"}]}]}}}}`,
			"Deployment NS/varied: /spec/template/spec/containers/0/env",
		),
		Entry(
			"with an emptied selector",
			"service",
			"webhook",
			`{"spec":{"selector":null}}`,
			"Service NS/webhook: /spec/selector",
		),
		Entry("with other rights", "clusterrole", "NS-role", `{"rules":[]}`, "ClusterRole NS-role: /rules"),
		Entry(
			"with another password",
			"secret",
			"credentials",
			`{"stringData":{"password":"sesame"}}`,
			"Secret NS/credentials: /data/password",
		),
		Entry(
			"without the release's mark",
			"configmap",
			"config",
			`{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`,
			"ConfigMap NS/config: /metadata/annotations/meta.helm.sh~1release-name",
		),
		Entry("deleted: a role", "clusterrole", "NS-role", "", "ClusterRole NS-role is missing"),
		Entry(
			"deleted: webhooks",
			"mutatingwebhookconfiguration",
			"NS-webhooks",
			"",
			"MutatingWebhookConfiguration NS-webhooks is missing",
		),
		Entry("deleted: a binding", "clusterrolebinding", "NS-binding", "", "ClusterRoleBinding NS-binding is missing"),
	)

	DescribeTable(
		"is not what others may do",
		func(ctx SpecContext, kind, object, change string) {
			patch(ctx, kind, object, strings.ReplaceAll(change, "NS", namespace))
			Expect(found(ctx)).To(BeEmpty())
		},
		Entry(
			"a certificate, injected",
			"mutatingwebhookconfiguration",
			"NS-webhooks",
			`{"webhooks":[{"name":"default.release.test","clientConfig":{"caBundle":"b3RoZXI="}}]}`,
		),
		Entry(
			"labels and annotations",
			"deployment",
			"manager",
			`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`,
		),
		Entry(
			"a container more, and a volume",
			"deployment",
			"manager",
			`{"spec":{"template":{"metadata":{"annotations":{"injected":"yes"}},"spec":{"containers":[{"name":"sidecar","image":"s"}],"volumes":[{"name":"v","emptyDir":{}}]}}}}`,
		),
		Entry(
			"a container in front",
			"deployment",
			"manager",
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"sidecar"},{"name":"manager"}],"containers":[{"name":"sidecar","image":"s"}]}}}}`,
		),
		Entry(
			"a variable more",
			"deployment",
			"varied",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","env":[{"name":"C","value":"3"}]}]}}}}`,
		),
		Entry(
			"rules that were aggregated",
			"clusterrole",
			"NS-aggregated",
			`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`,
		),
		Entry(
			"what carries the annotation that excludes it",
			"deployment",
			"manager",
			`{"metadata":{"annotations":{"capstan.dev/drift":"Ignore"}},"spec":{"replicas":0}}`,
		),
	)

	It("leaves alone the replicas of what is scaled automatically, and corrects the rest of it", func(ctx SpecContext) {
		run(ctx, "kubectl", "autoscale", "deployment", "manager", "-n", namespace, "--min=1", "--max=9")
		patch(ctx, "deployment", "manager", `{"spec":{"replicas":7}}`)
		Expect(found(ctx)).To(BeEmpty())
		patch(
			ctx,
			"deployment",
			"manager",
			`{"spec":{"template":{"spec":{"containers":[{"name":"manager","image":"other"}]}}}}`,
		)
		Expect(found(ctx)).To(ConsistOf("Deployment NS/manager: /spec/template/spec/containers/0/image"))
		correct(ctx)
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(7))
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("example.org/manager:v1"))
	})

	It("keeps an injected certificate when it corrects the rest", func(ctx SpecContext) {
		patch(
			ctx,
			"mutatingwebhookconfiguration",
			"NS-webhooks",
			`{"webhooks":[{"name":"default.release.test","failurePolicy":"Fail","clientConfig":{"caBundle":"b3RoZXI="}}]}`,
		)
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
		Expect(correct(ctx).Replaced).To(HaveLen(1))
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "manager"}))
		Expect(found(ctx)).To(BeEmpty())
	})

	It("of what another release took, or is being deleted, is told and left alone", func(ctx SpecContext) {
		patch(
			ctx,
			"configmap",
			"config",
			`{"data":{"key":"theirs"},"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`,
		)
		patch(ctx, "service", "webhook", `{"metadata":{"finalizers":["release.test/hold"]}}`)
		DeferCleanup(patch, "service", "webhook", `{"metadata":{"finalizers":null}}`)
		run(ctx, "kubectl", "delete", "service", "webhook", "-n", namespace, "--wait=false")
		Expect(found(ctx)).To(ConsistOf(
			"ConfigMap NS/config: it belongs to release NS/other",
			"Service NS/webhook: it is being deleted, but its finalizers hold it: release.test/hold"))
		Expect(correct(ctx).Versions).To(BeEmpty())
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(HaveKeyWithValue("key", "theirs"))
	})

	It("is not fought over with a webhook or policy that decides otherwise", func(ctx SpecContext) {
		policy := "replicas-" + namespace
		kubectlApply(ctx, namespace, `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: `+policy+`}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]}
  matchConditions: [{name: here, expression: "request.namespace == '`+namespace+`'"}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{replicas: 5}}"}}]
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

	It("that the API server does not let be corrected is told with the object and the reason", func(ctx SpecContext) {
		patch(ctx, "serviceaccount", "manager", `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`)
		patch(ctx, "configmap", "config", `{"data":{"key":"theirs"}}`)
		differences := compare(ctx, newRefusedEngine("configmaps"), namespace).Differences
		result, err := newRefusedEngine("configmaps").Correct(ctx, namespace, name, 1, differences[:1])
		Expect(differences).To(HaveLen(2))

		var rejected *release.RejectedError
		Expect(errors.As(err, &rejected)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("ConfigMap " + namespace + "/config")))
		Expect(result.Versions).To(BeEmpty())
	})

	It(
		"is not corrected while somebody is at work on the release, or in favour of an old revision",
		func(ctx SpecContext) {
			patch(ctx, "deployment", "manager", `{"spec":{"replicas":0}}`)
			differences := compare(ctx, engine, namespace).Differences
			_, err := engine.Correct(ctx, namespace, name, 7, differences)
			Expect(err).To(MatchError(release.ErrChanged))

			label := func(status string) {
				// by another program
				labels := `{"metadata":{"labels":{"status":"` + status + `","capstan.dev/revision":null}}}`
				_, err := client.CoreV1().
					Secrets(namespace).
					Patch(ctx, secretOf(1), types.MergePatchType, []byte(labels), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			label("pending-upgrade")

			_, err = engine.Correct(ctx, namespace, name, 1, differences)

			var pending *release.PendingError
			Expect(errors.As(err, &pending)).To(BeTrue(), "%v", err)
			Expect(pending.Until).To(BeTemporally(">", time.Now()))
			label("deployed")
			Expect(correct(ctx).Versions).To(HaveLen(1))
		},
	)

	It("is looked for with one request an object, and found by no write", func(ctx SpecContext) {
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
		Expect(dryRuns.Load()).To(BeNumerically("<=", 3), "what differs, and two that the API server writes in another way")
	})
})

var _ = Describe("What an action applied", func() {
	It("is known by its versions, so that nothing need be read again", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		d := desired(namespace, chartOf("1.0.0", configMap("config", "value"), deployment("manager", "2")), nil)
		applied := mustApply(ctx, engine, d).Versions
		Expect(applied).To(sameAs(compare(ctx, engine, namespace).Alike))

		d = desired(namespace, chartOf("1.1.0", configMap("config", "other"), deployment("manager", "2")), nil)
		again := mustApply(ctx, engine, d).Versions
		Expect(again).To(sameAs(compare(ctx, engine, namespace).Alike), "changed or not")
	})

	It("counts as the same when only its status or the number of its revision changes", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		before := mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", deployment("manager", "2")), nil)).Versions[0]

		Eventually(func(g Gomega) {
			d, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.ObservedGeneration).To(BeEquivalentTo(1))
			g.Expect(d.Annotations).To(HaveKey("deployment.kubernetes.io/revision"))
		}).Should(Succeed())

		after := compare(ctx, engine, namespace).Alike[0]
		Expect(after.ResourceVersion).NotTo(Equal(before.ResourceVersion))
		Expect(after.Same(before)).To(BeTrue())
		Expect(before.OlderThan(after)).To(BeTrue())
		run(ctx, "kubectl", "annotate", "deployment", "manager", "-n", namespace, "note=new")
		Expect(compare(ctx, engine, namespace).Alike[0].Same(before)).To(BeFalse())
	})
})

// sameAs matches the versions of the same objects with the same content, and at least the same age.
func sameAs(versions []release.Version) OmegaMatcher {
	same := make([]any, 0, len(versions))
	for _, v := range versions {
		same = append(same, And(HaveField("Object", v.Object), Satisfy(v.Same), Not(Satisfy(v.OlderThan))))
	}

	return ConsistOf(same...)
}

// compare compares the newest revision with the cluster.
func compare(ctx context.Context, e *release.Engine, namespace string) release.Comparison {
	GinkgoHelper()

	o, err := e.Observe(ctx, namespace, name)
	Expect(err).NotTo(HaveOccurred())

	newest, _ := o.Newest()
	record, err := e.Read(ctx, namespace, name, newest)
	Expect(err).NotTo(HaveOccurred())
	comparison, err := e.Compare(ctx, namespace, name, record.Objects)
	Expect(err).NotTo(HaveOccurred())

	return comparison
}

// newRefusedEngine makes an engine that may read everything, but write nothing of one resource.
func newRefusedEngine(resource string) *release.Engine {
	return newEngine("one", func(c *rest.Config) {
		c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/"+resource) {
					r.Header.Set("Impersonate-User", "nobody")
				}

				return rt.RoundTrip(r)
			})
		})
	})
}
