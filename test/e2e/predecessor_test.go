package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/takeover"
	"github.com/capstan-project/capstan/test/harness"
)

// What cluster-api-operator leaves behind, in a cluster that it never ran in. The takeover from its program
// is in cluster_api_operator_test.go.
var _ = Describe("A resource of cluster-api-operator", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// run runs the pod of cluster-api-operator's manager, with flags.
	run := func(ctx context.Context, flags ...string) *corev1.Pod {
		GinkgoHelper()

		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: "capi-operator", Labels: takeover.PredecessorLabels(),
			},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(0)),
				Containers: []corev1.Container{
					{Name: "manager", Image: "registry.example.com/a:1", Args: flags},
				},
			},
		}
		Expect(w.client.Create(ctx, pod)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(w.client.Delete(ctx, pod))).To(Succeed())
		})

		return pod
	}
	// resume lets the operator see the resource.
	resume := func(ctx context.Context, p v1alpha2.Provider) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Suspend = false })
	}

	It("is taken over by the commands of the documentation, which keep all objects and pods", func(ctx SpecContext) {
		manager := w.runPredecessor(ctx)
		t := newTiny("theirs", "v1.0.0")
		p := w.left(ctx, t)
		w.applyWithOwner(ctx, t, p)
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.OtherOperatorRunningReason))
		Expect(w.client.Create(ctx, leftWebhooks("theirs"))).To(Succeed())

		before := w.identitiesOf(ctx, t.name)

		w.run(ctx, "kubectl", "scale", "deployment", "--namespace", manager.Namespace,
			"--selector", takeover.PredecessorSelector, "--replicas=0")
		w.run(ctx, "kubectl", "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations",
			"--selector", takeover.PredecessorSelector)
		w.run(ctx, "kubectl", "wait", "capstan", "--all", "--all-namespaces",
			"--for=jsonpath={.status.release.status}=deployed", "--timeout=1m")
		w.run(ctx, "kubectl", "wait", "capstan", "--all", "--all-namespaces", "--for=condition=Ready", "--timeout=1m")

		Expect(w.read(ctx, p)(Default)).To(And(beReady("v1.0.0"), HaveField("Finalizers", ConsistOf(v1alpha2.Finalizer))))
		Expect(w.identitiesOf(ctx, t.name)).To(Equal(before))
	})

	It("is left alone while both operators run, and then taken over", func(ctx SpecContext) {
		pod := run(ctx)
		p := w.left(ctx, newTiny("beside", "v1.0.0"))
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.OtherOperatorRunningReason, "pod default/capi-operator",
				"kubectl scale deployment --namespace default --selector "+takeover.PredecessorSelector+" --replicas=0"),
			failPreflight(v1alpha2.OtherOperatorRunningReason),
			HaveField("Finalizers", ConsistOf(takeover.PredecessorFinalizer))))
		Expect(w.helm(ctx, "helm", "list", "--all", "-n", p.Namespace)).To(BeEmpty())

		Expect(w.client.Delete(ctx, pod)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			beReady("v1.0.0"), HaveField("Finalizers", ConsistOf(v1alpha2.Finalizer))))
		Eventually(w.events(ctx, p)).Should(ContainElement(HaveField("Reason", v1alpha2.TakenOverReason)))
	})

	It("is taken over while that manages only another namespace", func(ctx SpecContext) {
		run(ctx, "--leader-elect", "--namespace=another")
		p := w.left(ctx, newTiny("one-by-one", "v1.0.0"))
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("is not ready as soon as Capstan sees it, whatever its status says", func(ctx SpecContext) {
		silent := newSilentServer()
		p := w.left(ctx, newTiny("stale-status", "v1.0.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Suspend = false
			p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{HTTP: "http://" + silent.address}
		})
		Eventually(silent.connections).Should(BeNumerically(">", 0))
		Expect(w.read(ctx, p)(Default)).To(notBeReady(v1alpha2.ProgressingReason, "cluster-api-operator"))
	})

	It("can be deleted although that has put its finalizer on it once more", func(ctx SpecContext) {
		p := w.left(ctx, newTiny("again", "v1.0.0"))
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { controllerutil.AddFinalizer(p, takeover.PredecessorFinalizer) })
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	It("has a CRD whose webhook and label go when Capstan upgrades it", func(ctx SpecContext) {
		const name = "infrastructureproviders.operator.cluster.x-k8s.io"

		w.editDefinition(ctx, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Labels = takeover.PredecessorLabels()
			metav1.SetMetaDataAnnotation(&crd.ObjectMeta, "cert-manager.io/inject-ca-from", "capi-operator-system/serving-cert")
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
						Namespace: "capi-operator-system", Name: "capi-operator-webhook-service", Path: ptr.To("/convert"),
					}},
				},
			}
		})

		w.restart("--upgrade-crds")
		Eventually(func() *apiextensionsv1.CustomResourceDefinition { return w.definition(ctx, name) }).Should(And(
			HaveField("Spec.Conversion.Strategy", apiextensionsv1.NoneConverter),
			HaveField("Spec.Conversion.Webhook", BeNil()),
			HaveField("Labels", Not(HaveKey(takeover.PredecessorLabel))),
			HaveField("Annotations", Not(HaveKey("cert-manager.io/inject-ca-from")))))
	})

	It("says what holds it if it was deleted before the takeover", func(ctx SpecContext) {
		pod := run(ctx)
		p := w.left(ctx, newTiny("too-early", "v1.0.0"))
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.OtherOperatorRunningReason))
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletingReason))

		Expect(w.client.Delete(ctx, pod)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason,
			"the finalizer "+takeover.PredecessorFinalizer, "start it again", v1alpha2.Label(p)))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetFinalizers(nil) })
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	It("no longer owns what that has installed, so the garbage collector does not remove the provider", func(
		ctx SpecContext,
	) {
		t := newTiny("owned-by-resource", "v1.0.0")
		p := w.left(ctx, t)
		manager := w.applyWithOwner(ctx, t, p)
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		uid := manager.UID
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager)).To(Succeed())
		Expect(manager.OwnerReferences).To(BeEmpty())
		Expect(manager.UID).To(Equal(uid))

		user := t.object("v1", "in-use")
		Expect(w.client.Create(ctx, user)).To(Succeed())
		Expect(w.client.Delete(ctx, p, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason, t.crd()))
		Consistently(func() error {
			return w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager)
		}).WithTimeout(quietPeriod).Should(Succeed())
		Expect(manager.DeletionTimestamp).To(BeNil())

		Expect(w.client.Delete(ctx, user)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	It("names the webhooks that were left behind and refuse every change", func(ctx SpecContext) {
		webhooks := leftWebhooks("unwritable")
		p := w.left(ctx, newTiny("unwritable", "v1.0.0"))
		Expect(w.client.Create(ctx, webhooks)).To(Succeed())
		resume(ctx, p)
		Eventually(w.read(ctx, p)).Should(And(
			failPreflight(v1alpha2.ChangeRefusedReason, webhooks.Webhooks[0].Name),
			beStalled(v1alpha2.ChangeRefusedReason, "delete its webhooks: kubectl delete "+
				"validatingwebhookconfigurations,mutatingwebhookconfigurations --selector "+takeover.PredecessorSelector)))

		w.run(ctx, "kubectl", "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations",
			"--selector", takeover.PredecessorSelector)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})
})

// runPredecessor runs the Deployment that the chart of cluster-api-operator creates. Its pods do nothing.
func (w *world) runPredecessor(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: peerDeployment.Namespace}}
	Expect(w.client.Create(ctx, namespace)).To(Succeed())

	labels := takeover.PredecessorLabels()
	d := &appsv1.Deployment{
		ObjectMeta: named(namespace.Name, "capi-operator-cluster-api-operator"),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "manager", Image: "registry.example.com/operator:1", Args: []string{"--leader-elect"}},
				}},
			},
		},
	}
	d.Labels = labels
	Expect(w.client.Create(ctx, d)).To(Succeed())

	Eventually(func(g Gomega) []corev1.Pod {
		pods := &corev1.PodList{}
		g.Expect(w.client.List(ctx, pods, labels)).To(Succeed())

		return pods.Items
	}).Should(HaveLen(1))

	return d
}

// applyWithOwner applies a provider's components as cluster-api-operator does, and returns the Deployment: objects in
// the resource's namespace are owned by the resource.
func (w *world) applyWithOwner(ctx context.Context, t tiny, p *v1alpha2.InfrastructureProvider) *appsv1.Deployment {
	GinkgoHelper()

	manager := w.createComponents(ctx, t, "capi-operator", metav1.OwnerReference{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: string(p.ProviderType()), Name: p.Name, UID: p.UID,
	})
	Expect(manager.OwnerReferences).NotTo(BeEmpty())

	return manager
}

// createComponents creates a provider's objects as another program does: in the namespace of its resource, as a field
// manager, and with owners of what is in the namespace. It returns the Deployment.
func (w *world) createComponents(
	ctx context.Context, t tiny, fieldManager string, owners ...metav1.OwnerReference,
) *appsv1.Deployment {
	GinkgoHelper()

	p := t.resource()
	components := strings.NewReplacer(t.name+"-system", p.Namespace, "${TINY_LEVEL:=info}", "info").Replace(t.components)
	objects, err := utilyaml.ToUnstructured([]byte(components))
	Expect(err).NotTo(HaveOccurred())

	for i := range objects {
		o := &objects[i]
		o.SetLabels(map[string]string{v1alpha2.ClusterctlLabel: "", v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p)})

		if o.GetNamespace() != "" {
			o.SetOwnerReferences(owners)
		}

		Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, o, client.FieldOwner(fieldManager)))).To(Succeed())
	}

	manager := &appsv1.Deployment{ObjectMeta: named(p.Namespace, t.name+"-controller-manager")}
	Expect(w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager)).To(Succeed())

	return manager
}

// left creates a provider's resource as cluster-api-operator leaves it: with its finalizer, and ready.
func (w *world) left(ctx context.Context, t tiny) *v1alpha2.InfrastructureProvider {
	GinkgoHelper()

	p := t.resource()
	p.Finalizers = []string{takeover.PredecessorFinalizer}
	p.Spec.Suspend = true

	Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
	Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
	Expect(w.client.Create(ctx, p)).To(Succeed())
	Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.SuspendedReason))

	p.Status = v1alpha2.ProviderStatus{ObservedGeneration: p.Generation + 1, Conditions: []metav1.Condition{{
		Type: v1alpha2.ReadyCondition, Status: metav1.ConditionTrue, Reason: "MinimumReplicasAvailable",
		Message: "Deployment has minimum availability.", LastTransitionTime: metav1.Now(),
	}}}
	Expect(w.client.Status().Update(ctx, p)).To(Succeed())

	return p
}

// leftWebhooks returns a webhook of cluster-api-operator that does not respond. It concerns Capstan's operator in one
// namespace only.
func leftWebhooks(namespace string) *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "left-behind", Labels: takeover.PredecessorLabels()},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "vinfrastructureprovider.kb.io",
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: "capi-operator-system", Name: "capi-operator-webhook-service",
				Path: ptr.To("/validate-operator-cluster-x-k8s-io-v1alpha2-infrastructureprovider"),
			}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{v1alpha2.GroupVersion.Group}, APIVersions: []string{"*"},
					Resources: []string{"infrastructureproviders"},
				},
			}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "operator",
				Expression: fmt.Sprintf(`request.userInfo.username == "%s" && request.namespace == "%s"`,
					harness.OperatorUser, namespace),
			}},
			AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		}},
	}
}
