package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Users who may write Secrets can make release records, so one is trusted only if the status of the resource has its
// digest. After a restore, what runs must not be disturbed: a revision with the same objects follows.
var _ = Describe("A release that the status of its resource does not know", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

	// installed installs a provider in two revisions.
	installed := func(ctx context.Context, name string) (tiny, *v1alpha2.InfrastructureProvider) {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		p := t.resource()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		t = newTiny(name, "v1.1.0")
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = t.version })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		w.awaitItem(ctx, p)

		return t, p
	}

	history := func(ctx context.Context, t tiny) []helmRelease {
		return w.helm(ctx, "helm", "history", "infrastructure-"+t.name, "-n", t.name)
	}

	// replace replaces a resource by another one, as a restore from a backup does, while the operator does not run.
	// change completes the new resource.
	replace := func(ctx context.Context, p *v1alpha2.InfrastructureProvider, change func(*v1alpha2.InfrastructureProvider),
	) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()
		Expect(w.operator.Stop()).To(Succeed())

		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetFinalizers(nil) })
		Expect(w.client.Delete(ctx, p)).To(Succeed())

		again := p.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}
		again.Status = v1alpha2.ProviderStatus{}
		change(again)

		status := again.Status
		Expect(w.client.Create(ctx, again)).To(Succeed())

		again.Status = status
		Expect(w.client.Status().Update(ctx, again)).To(Succeed())
		w.start()

		return again
	}
	unchanged := func(*v1alpha2.InfrastructureProvider) {}
	withoutSource := func(p *v1alpha2.InfrastructureProvider) {
		p.Spec.FetchConfig.Selector.MatchLabels = map[string]string{"provider": "unknown"}
	}

	notTrusted := "revision 2 of Helm release"

	// expectCare expects that the operator corrects what is missing of the release.
	expectCare := func(ctx context.Context, t tiny) {
		GinkgoHelper()

		account := &corev1.ServiceAccount{}
		account.Namespace, account.Name = t.name, t.name+"-manager"
		Expect(w.client.Delete(ctx, account)).To(Succeed())
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(account), account) }).Should(Succeed())
	}

	It("because it was lost is followed by the same objects, and no pod restarts", func(ctx SpecContext) {
		t, p := installed(ctx, "status-lost")

		Expect(w.operator.Stop()).To(Succeed())
		before := w.identitiesOf(ctx, t.name)
		w.read(ctx, p)(Default)

		p.Status = v1alpha2.ProviderStatus{}
		Expect(w.client.Status().Update(ctx, p)).To(Succeed())
		w.start()

		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(history(ctx, t)).To(HaveLen(3))
		Expect(w.identitiesOf(ctx, t.name)).To(Equal(before))
		Expect(p.Status.Objects).NotTo(BeEmpty())
		expectCare(ctx, t)
	})

	It("because the resource was created again is followed by the same objects, and no pod restarts",
		func(ctx SpecContext) {
			t, p := installed(ctx, "created-again")

			Expect(w.operator.Stop()).To(Succeed())
			before := w.identitiesOf(ctx, t.name)
			p = replace(ctx, p, unchanged)

			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			Expect(history(ctx, t)).To(HaveLen(3))
			Expect(w.identitiesOf(ctx, t.name)).To(Equal(before))
			expectCare(ctx, t)
		})

	It("of which a restored status tells is cared for, and no pod restarts", func(ctx SpecContext) {
		t, p := installed(ctx, "restored")

		Expect(w.operator.Stop()).To(Succeed())
		began, expectUndisturbed := time.Now(), w.undisturbed(ctx)
		status := p.Status
		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) { p.Status = status })

		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(history(ctx, t)).To(HaveLen(2))
		expectUndisturbed(p, began, "patch infrastructureproviders restored/restored")
		expectCare(ctx, t)
	})

	It("is left alone until its next revision", func(ctx SpecContext) {
		t, p := installed(ctx, "not-known")
		p = replace(ctx, p, withoutSource)
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False",
			v1alpha2.VersionNotFoundReason, notTrusted))

		manager := &appsv1.Deployment{}
		manager.Namespace, manager.Name = t.name, t.name+"-controller-manager"
		Expect(w.client.Delete(ctx, manager)).To(Succeed())
		Consistently(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager) }, quietPeriod).
			ShouldNot(Succeed())

		By("making a revision possible")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().FetchConfig = t.resource().Spec.FetchConfig })
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager) }).Should(Succeed())
		Expect(history(ctx, t)).To(HaveLen(3))
	})

	It("is not returned to", func(ctx SpecContext) {
		t, p := installed(ctx, "not-returned-to")
		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Release = &v1alpha2.ReleaseSpec{RollbackTo: new(1)}
		})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason, "revision 1 of Helm release"))
		Expect(history(ctx, t)).To(HaveLen(2))
	})

	It("is not the target of an automatic rollback", func(ctx SpecContext) {
		t, p := installed(ctx, "failing")
		broken := newTiny(t.name, "v1.2.0")
		broken.components = strings.Replace(broken.components, "example.com/", "example.com/never-pulled/", 1)
		Expect(w.client.Create(ctx, broken.configMap())).To(Succeed())

		zero := int32(0)
		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Version = broken.version
			p.Spec.Release = &v1alpha2.ReleaseSpec{Retries: &zero, Timeout: &metav1.Duration{Duration: 3 * time.Second}}
		})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "not healthy within 3s"))
		Expect(history(ctx, t)).To(HaveLen(3), "the third one failed, and none follows")
	})

	It("stays when its resource is deleted, with an event that tells", func(ctx SpecContext) {
		t, p := installed(ctx, "kept")
		p = replace(ctx, p, withoutSource)
		before := w.identitiesOf(ctx, t.name)
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False",
			v1alpha2.VersionNotFoundReason, notTrusted))

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.identitiesOf(ctx, t.name)).To(Equal(before))
		Expect(history(ctx, t)).To(HaveLen(2))

		Eventually(func(g Gomega) []eventsv1.Event {
			list := &eventsv1.EventList{}
			g.Expect(w.client.List(ctx, list, client.InNamespace(t.name))).To(Succeed())

			return list.Items
		}).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.ReleaseKeptReason),
			HaveField("Note", ContainSubstring("helm uninstall infrastructure-kept -n kept")))))
	})

	It("is removed with the resource that has installed something", func(ctx SpecContext) {
		t, p := installed(ctx, "planted")

		Expect(w.operator.Stop()).To(Succeed())

		planted := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: t.name, Name: "sh.helm.release.v1.infrastructure-planted.v3",
				Labels: map[string]string{
					"owner": "helm", "name": "infrastructure-planted", "version": "3", "status": "deployed",
					"capstan.dev/revision": "3", "capstan.dev/resource-uid": "another",
				},
			},
			Type: "helm.sh/release.v1",
		}
		Expect(w.client.Create(ctx, planted)).To(Succeed())
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		w.start()
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(planted), planted)).NotTo(Succeed())
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"},
			&appsv1.Deployment{})).NotTo(Succeed())
	})

	It("is shown while its resource is suspended", func(ctx SpecContext) {
		_, p := installed(ctx, "distrusted")
		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) { p.Spec.Suspend = true })
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False", v1alpha2.SuspendedReason,
			notTrusted, "nothing is changed while spec.suspend is true"))
	})
})
