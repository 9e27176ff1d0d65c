package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// said returns the message that a user sees about a mistake; empty until there is one.
type said func(Gomega) string

var _ = Describe("A mistake while migrating", Ordered, ContinueOnFailure, func() {
	var w *world

	// steady runs all the time, in the newer of its two versions. The older one does not know the version that
	// objects are stored in.
	steady := newTiny("steady", "v1.1.0").serving("v2", "v1")
	older := newTiny("steady", "v1.0.0").serving("v0")
	steadyResource := steady.resource()

	// bystanders are what runs before the first mistake, and must not be touched by any.
	var bystanders map[string]string

	// running returns the UIDs and generations of all managers and CRDs, by name.
	running := func(ctx context.Context) map[string]string {
		GinkgoHelper()

		deployments, crds := &appsv1.DeploymentList{}, &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(w.client.List(ctx, deployments)).To(Succeed())
		Expect(w.client.List(ctx, crds)).To(Succeed())

		found := map[string]string{}
		for _, o := range deployments.Items {
			found["Deployment "+o.Name] = fmt.Sprintf("%s, generation %d", o.UID, o.Generation)
		}

		for _, o := range crds.Items {
			found["CustomResourceDefinition "+o.Name] = fmt.Sprintf("%s, generation %d", o.UID, o.Generation)
		}

		return found
	}

	BeforeAll(func(ctx SpecContext) {
		w = readyWorld(ctx)
		w.offer(ctx, older)
		w.offer(ctx, steady)
		Expect(w.client.Create(ctx, steadyResource)).To(Succeed())
		Eventually(w.read(ctx, steadyResource)).Should(beReady("v1.1.0"))
		w.applyAsClusterctl(ctx, newTiny("abroad", "v1.0.0"))

		bystanders = running(ctx)
	})

	// ready returns the message of the condition Ready of a resource that is not ready.
	ready := func(ctx context.Context, p v1alpha2.Provider) said {
		return func(g Gomega) string {
			g.Expect(w.read(ctx, p)(g)).To(WithTransform(func(p v1alpha2.Provider) bool {
				return conditions.IsFalse(p, v1alpha2.ReadyCondition)
			}, BeTrue()))

			return conditions.GetMessage(p, v1alpha2.ReadyCondition)
		}
	}
	// event returns the texts of the events about a resource with a reason.
	event := func(ctx context.Context, p client.Object, reason string) said {
		return func(g Gomega) string {
			var notes []string

			for _, e := range w.events(ctx, p)(g) {
				if e.Reason == reason {
					notes = append(notes, e.Note)
				}
			}

			return strings.Join(notes, "\n")
		}
	}
	// apply applies a manifest as a user would, and returns what kubectl says.
	apply := func(ctx context.Context, manifest string) said {
		return func(g Gomega) string {
			cmd := w.bed.Command(ctx, "kubectl", "apply", "-f", "-")
			cmd.Stdin = strings.NewReader(manifest)

			out, err := cmd.CombinedOutput()
			g.Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}))

			return string(out)
		}
	}
	// create creates the resource of a tiny provider with a mistake in it.
	create := func(name string, mistake func(*tiny, *v1alpha2.InfrastructureProvider)) func(context.Context) said {
		return func(ctx context.Context) said {
			t := newTiny(name, "v1.0.0")
			p := t.resource()
			mistake(&t, p)
			w.offer(ctx, t)
			Expect(w.client.Create(ctx, p)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, p)).To(Succeed()) })

			return ready(ctx, p)
		}
	}
	// installed installs a provider to make a mistake with.
	installed := func(ctx context.Context, t tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		p := t.resource()
		w.offer(ctx, t)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		return p
	}
	// change changes the resource of the provider that runs, and undoes that afterwards.
	change := func(what func(*v1alpha2.ProviderSpec)) func(context.Context) said {
		return func(ctx context.Context) said {
			before := steadyResource.Spec.DeepCopy()

			update(ctx, w, steadyResource, func(p v1alpha2.Provider) { what(p.GetSpec()) })
			DeferCleanup(func(ctx SpecContext) {
				update(ctx, w, steadyResource, func(p v1alpha2.Provider) { *p.GetSpec() = *before })
				Eventually(w.read(ctx, steadyResource)).Should(beReady("v1.1.0"))
			})

			return ready(ctx, steadyResource)
		}
	}
	// core creates another CoreProvider.
	core := func(namespace, name string) func(context.Context) said {
		return func(ctx context.Context) said {
			p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			p.Spec.Version = "v1.0.0"
			p.Spec.FetchConfig = steadyResource.Spec.FetchConfig.DeepCopy()

			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			Expect(w.client.Create(ctx, ns)).To(Succeed())
			Expect(w.client.Create(ctx, p)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, p)).To(Succeed()) })

			return ready(ctx, p)
		}
	}

	DescribeTable(
		"is refused, or does no harm, and the message says what to do",
		func(ctx SpecContext, makeIt func(context.Context) said, parts ...string) {
			message := makeIt(ctx)

			for _, part := range parts {
				Eventually(message).Should(ContainSubstring(part))
			}

			now := running(ctx)
			for name, identity := range bystanders {
				Expect(now).To(HaveKeyWithValue(name, identity))
			}

			AddReportEntry(CurrentSpecReport().LeafNodeText, message(Default))
		},
		Entry("the namespace is not the one that clusterctl installed into",
			create("abroad", func(*tiny, *v1alpha2.InfrastructureProvider) {}),
			"infrastructure-abroad is already installed in namespace abroad-system",
			"to take it over, create the resource in that namespace instead"),
		Entry("core has another name", core("capi-system", "capi"), "cluster-api"),
		Entry("there is a second core", core("capi-two", "cluster-api"),
			"is already installed by the resource in namespace cluster-api-system", "delete"),
		Entry("a provider has two resources",
			func(ctx context.Context) said {
				p, source := steady.resource(), steady.configMap()
				p.Namespace, source.Namespace = "another-system", "another-system"
				Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}})).To(Succeed())
				Expect(w.client.Create(ctx, source)).To(Succeed())
				Expect(w.client.Create(ctx, p)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, p)).To(Succeed()) })

				return ready(ctx, p)
			},
			"is already installed by the resource in namespace steady", "delete"),
		Entry("the Secret is forgotten",
			create("no-secret", func(_ *tiny, p *v1alpha2.InfrastructureProvider) {
				p.Spec.ConfigSecret = &v1alpha2.SecretReference{Name: "aws-variables"}
			}),
			"Secret no-secret/aws-variables", "does not exist", "create it"),
		Entry("a key of the Secret is misspelt",
			func(ctx context.Context) said {
				return create("misspelt", func(t *tiny, p *v1alpha2.InfrastructureProvider) {
					t.components = strings.Replace(t.components, "${TINY_LEVEL:=info}", "${AWS_B64ENCODED_CREDENTIALS}", 1)
					p.Spec.SecretName = "variables"

					Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
					Expect(w.client.Create(ctx, &corev1.Secret{
						ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "variables"},
						StringData: map[string]string{"AWS_B64ENCODED_CREDENTIAL": "W2RlZmF1bHRdCg=="},
					})).To(Succeed())
				})(ctx)
			},
			"AWS_B64ENCODED_CREDENTIALS", "Secret misspelt/variables"),
		Entry("the version does not exist",
			change(func(spec *v1alpha2.ProviderSpec) { spec.Version = "v9.9.9" }),
			"v1.1.0 runs; v9.9.9 is not applied: "),
		Entry("the version is older than what is installed",
			change(func(spec *v1alpha2.ProviderSpec) { spec.Version = older.version }),
			steady.crd(), "v1.1.0 runs; v1.0.0 is not applied: "),
		Entry("an unknown provider has no fetchConfig",
			create("unheard-of", func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.FetchConfig = nil }),
			"unheard-of", "spec.fetchConfig"),
		Entry("fetchConfig has two sources",
			func(ctx context.Context) said {
				return apply(ctx, `{apiVersion: operator.cluster.x-k8s.io/v1alpha2, kind: InfrastructureProvider,
					metadata: {name: two-sources, namespace: default},
					spec: {fetchConfig: {url: "https://example.com/x.yaml", selector: {matchLabels: {a: b}}}}}`)
			},
			"InfrastructureProvider", "two-sources", "set exactly one of"),
		Entry("the API version is v1alpha1",
			func(ctx context.Context) said {
				return apply(ctx, `{apiVersion: operator.cluster.x-k8s.io/v1alpha1, kind: InfrastructureProvider,
					metadata: {name: outdated, namespace: default}}`)
			},
			`no matches for kind "InfrastructureProvider" in version "operator.cluster.x-k8s.io/v1alpha1"`),
		Entry("a feature gate is not true or false",
			func(ctx context.Context) said {
				return apply(ctx, `{apiVersion: operator.cluster.x-k8s.io/v1alpha2, kind: InfrastructureProvider,
					metadata: {name: ill-typed, namespace: default},
					spec: {manager: {featureGates: {MachinePool: "yes"}}}}`)
			},
			"spec.manager.featureGates.MachinePool", "boolean"),
		Entry("the contract does not fit core",
			create("misfit", func(t *tiny, _ *v1alpha2.InfrastructureProvider) {
				t.metadata = strings.ReplaceAll(t.metadata, "v1beta2", "v1alpha3")
			}),
			`contract "v1alpha3"`, "choose a version"),
		Entry("the certificate of the proxy or server is not trusted",
			func(ctx context.Context) said {
				server := httptest.NewTLSServer(http.NotFoundHandler())
				DeferCleanup(server.Close)

				return create("no-ca", func(_ *tiny, p *v1alpha2.InfrastructureProvider) {
					p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{URL: server.URL + "/infrastructure-components.yaml"}
				})(ctx)
			},
			"certificate", "ca.crt"),
		Entry("cert-manager is missing",
			func(ctx context.Context) said {
				return create("no-certs", func(t *tiny, _ *v1alpha2.InfrastructureProvider) {
					t.components += "---\napiVersion: cert-manager.io/v1alpha7\nkind: Certificate\n" +
						"metadata: {name: serving, namespace: no-certs-system}\nspec: {secretName: serving}\n"
				})(ctx)
			},
			"cert-manager"),
		Entry("a Helm release has the name already",
			func(ctx context.Context) said {
				Expect(w.client.Create(ctx, newTiny("taken", "v1.0.0").namespace())).To(Succeed())
				w.run(ctx, "helm", "install", "infrastructure-taken", platformChart(), "-n", "taken")

				return create("taken", func(*tiny, *v1alpha2.InfrastructureProvider) {})(ctx)
			},
			"Helm release taken/infrastructure-taken was created by another program", "chart platform 1.0.0"),
		Entry("a resource is deleted while its objects exist",
			func(ctx context.Context) said {
				t := newTiny("in-use", "v1.0.0")
				p := installed(ctx, t)
				victim := t.object("v1", "victim")

				Eventually(func() error { return w.client.Create(ctx, victim) }).Should(Succeed())
				Expect(w.client.Delete(ctx, p)).To(Succeed())

				return ready(ctx, p)
			},
			"default/victim", "delete"),
		Entry("clusterctl deletes a provider",
			func(ctx context.Context) said {
				p := installed(ctx, newTiny("deleted", "v1.0.0"))
				w.run(ctx, "kubectl", "delete", "deployments,serviceaccounts", "-n", p.Namespace,
					"-l", v1alpha2.ClusterctlProviderLabel+"=infrastructure-deleted")
				Eventually(func() error {
					return w.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: "deleted-controller-manager"},
						&appsv1.Deployment{})
				}).Should(Succeed(), "it is back")

				return event(ctx, p, v1alpha2.DriftCorrectedReason)
			},
			"Deployment deleted/deleted-controller-manager"),
		Entry("both operators run",
			func(ctx context.Context) said {
				manager := capiOperator()
				Expect(w.client.Create(ctx, &corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{Name: manager.Namespace},
				})).To(Succeed())
				Expect(w.client.Create(ctx, manager)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, manager)).To(Succeed()) })

				return create("two-operators", func(_ *tiny, p *v1alpha2.InfrastructureProvider) {
					p.Finalizers = []string{takeover.PredecessorFinalizer}
				})(ctx)
			},
			"cluster-api-operator", "pod capi-operator-system/capi-operator-manager", "--replicas=0"),
		Entry("another GitOps tool manages the objects too",
			func(ctx context.Context) said {
				p := installed(ctx, newTiny("fought-over", "v1.0.0"))
				scale := func() error {
					return w.bed.Command(ctx, "kubectl", "scale", "deployment", "fought-over-controller-manager",
						"-n", p.Namespace, "--replicas=0").Run()
				}

				return func(g Gomega) string {
					g.Expect(scale()).To(Succeed())
					g.Expect(w.read(ctx, p)(g)).To(haveCondition(
						v1alpha2.DriftedCondition, metav1.ConditionTrue, v1alpha2.DriftNotCorrectedReason))

					return conditions.GetMessage(p, v1alpha2.DriftedCondition)
				}
			},
			"Deployment fought-over/fought-over-controller-manager", "changed back each time",
			"kubectl get --show-managed-fields"),
		Entry("helm uninstalls a provider",
			func(ctx context.Context) said {
				p := installed(ctx, newTiny("by-hand", "v1.0.0"))
				w.run(ctx, "helm", "uninstall", "infrastructure-by-hand", "-n", p.Namespace)

				return ready(ctx, p)
			},
			"not installed: another program uninstalled release by-hand/infrastructure-by-hand", "to install it again"),
		Entry("a CRD is deleted",
			func(ctx context.Context) said {
				t := newTiny("pruned", "v1.0.0")
				p := installed(ctx, t)
				object := t.object("v1", "kept")
				object.SetFinalizers([]string{"example.com/kept"})
				Eventually(func() error { return w.client.Create(ctx, object) }).Should(Succeed())
				Expect(w.client.Delete(ctx, w.definition(ctx, t.crd()))).To(Succeed())
				DeferCleanup(func(ctx SpecContext) {
					Eventually(func(g Gomega) {
						g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
						object.SetFinalizers(nil)
						g.Expect(w.client.Update(ctx, object)).To(Succeed())
					}).Should(Succeed())
					Eventually(func(g Gomega) {
						crd := &apiextensionsv1.CustomResourceDefinition{}
						g.Expect(w.client.Get(ctx, client.ObjectKey{Name: t.crd()}, crd)).To(Succeed())
						g.Expect(crd.DeletionTimestamp).To(BeNil())
					}).Should(Succeed(), "it is back")
				})

				return event(ctx, p, v1alpha2.CRDDeletingReason)
			},
			"CustomResourceDefinition tinypruneds.infrastructure.cluster.x-k8s.io", "will be recreated"),
		Entry("webhooks of cluster-api-operator are left behind",
			func(ctx context.Context) said {
				left := leftWebhook("left-behind")
				Expect(w.client.Create(ctx, left)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, left)).To(Succeed()) })

				return create("left-behind", func(*tiny, *v1alpha2.InfrastructureProvider) {})(ctx)
			},
			"vinfrastructureprovider.kb.io", "capi-operator-webhook-service", "delete its webhooks"),
	)
})

// capiOperator returns a pod of cluster-api-operator.
func capiOperator() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "capi-operator-system", Name: "capi-operator-manager", Labels: takeover.PredecessorLabels(),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/manager:v1"}}},
	}
}

// leftWebhook returns a webhook of cluster-api-operator, which no longer runs, for changes of the resources in
// a namespace.
func leftWebhook(namespace string) *admissionv1.ValidatingWebhookConfiguration {
	fail, none, path := admissionv1.Fail, admissionv1.SideEffectClassNone,
		"/validate-operator-cluster-x-k8s-io-v1alpha2-infrastructureprovider"

	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "capi-operator-validating-webhook-configuration"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "vinfrastructureprovider.kb.io",
			AdmissionReviewVersions: []string{"v1"},
			FailurePolicy:           &fail,
			SideEffects:             &none,
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: "capi-operator-system", Name: "capi-operator-webhook-service", Path: &path,
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups:   []string{v1alpha2.GroupVersion.Group},
					APIVersions: []string{v1alpha2.GroupVersion.Version},
					Resources:   []string{"infrastructureproviders"},
				},
			}},
		}},
	}
}
