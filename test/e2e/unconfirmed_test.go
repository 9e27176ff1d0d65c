package e2e

import (
	"context"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Users who may write Secrets can make release records, so one is trusted only if the status of the resource has its
// digest, or the cluster is what it says. After a restore, what runs must not be disturbed.
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

	// drifting is a change that also deletes an object of the release, so that the cluster does not confirm the record.
	drifting := func(change func(*v1alpha2.InfrastructureProvider)) func(*v1alpha2.InfrastructureProvider) {
		return func(p *v1alpha2.InfrastructureProvider) {
			change(p)

			account := &corev1.ServiceAccount{}
			account.Namespace, account.Name = p.Namespace, p.Name+"-manager"
			Expect(w.client.Delete(context.Background(), account)).To(Succeed())
		}
	}

	notTrusted := "revision 2 of Helm release"

	// adopt accepts the revision with the digest that the condition names.
	adopt := func(ctx context.Context, p *v1alpha2.InfrastructureProvider) {
		GinkgoHelper()

		message := meta.FindStatusCondition(p.Status.Conditions, v1alpha2.ReadyCondition).Message
		digest := regexp.MustCompile("v1:[0-9a-f]{64}").FindString(message)
		Expect(digest).NotTo(BeEmpty(), message)
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: digest})
		})
	}

	// expectCare expects that the operator corrects what is missing of the release.
	expectCare := func(ctx context.Context, t tiny) {
		GinkgoHelper()

		account := &corev1.ServiceAccount{}
		account.Namespace, account.Name = t.name, t.name+"-manager"
		Expect(w.client.Delete(ctx, account)).To(Succeed())
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(account), account) }).Should(Succeed())
	}

	It("because it was lost is recorded again, and no pod restarts", func(ctx SpecContext) {
		t, p := installed(ctx, "status-lost")

		Expect(w.operator.Stop()).To(Succeed())
		began, expectUndisturbed := time.Now(), w.undisturbed(ctx)
		w.read(ctx, p)(Default)

		p.Status = v1alpha2.ProviderStatus{}
		Expect(w.client.Status().Update(ctx, p)).To(Succeed())
		w.start()

		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(history(ctx, t)).To(HaveLen(2))
		expectUndisturbed(p, began)
		expectCare(ctx, t)
	})

	It("because the resource was created again is recorded again, and no pod restarts", func(ctx SpecContext) {
		t, p := installed(ctx, "created-again")

		Expect(w.operator.Stop()).To(Succeed())
		began, expectUndisturbed := time.Now(), w.undisturbed(ctx)
		p = replace(ctx, p, unchanged)

		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(history(ctx, t)).To(HaveLen(2))
		// The finalizer, and the label of the request.
		expectUndisturbed(p, began, "patch infrastructureproviders created-again/created-again",
			"patch secrets created-again/sh.helm.release.v1.infrastructure-created-again.v2")
		expectCare(ctx, t)
	})

	It("without digests, as an earlier operator wrote it, is cared for, and no pod restarts", func(ctx SpecContext) {
		t, p := installed(ctx, "no-digests")

		Expect(w.operator.Stop()).To(Succeed())
		began, expectUndisturbed := time.Now(), w.undisturbed(ctx)
		w.read(ctx, p)(Default)

		for i := range p.Status.History {
			p.Status.History[i].Digest = ""
		}

		Expect(w.client.Status().Update(ctx, p)).To(Succeed())
		w.start()

		Eventually(w.read(ctx, p)).Should(HaveField("Status.History", HaveExactElements(
			HaveField("Digest", HavePrefix("v1:")), HaveField("Digest", BeEmpty()))))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(history(ctx, t)).To(HaveLen(2))
		expectUndisturbed(p, began)
		expectCare(ctx, t)

		By("returning to a revision without a digest, which a user adopts")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(int64(1))}
		})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason, "revision 1 of Helm release",
			v1alpha2.AdoptReleaseAnnotation))
		Expect(history(ctx, t)).To(HaveLen(2))

		adopt(ctx, p)
		Eventually(w.read(ctx, p)).Should(HaveField("Status.InstalledVersion", HaveValue(Equal("v1.0.0"))))
		Expect(history(ctx, t)).To(HaveLen(3))
	})

	It("of which a restored status tells is cared for, and no pod restarts", func(ctx SpecContext) {
		t, p := installed(ctx, "restored")

		Expect(w.operator.Stop()).To(Succeed())
		began, expectUndisturbed := time.Now(), w.undisturbed(ctx)
		status := p.Status
		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) { p.Status = status })

		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(history(ctx, t)).To(HaveLen(2))
		expectUndisturbed(p, began, "patch infrastructureproviders restored/restored",
			"patch secrets restored/sh.helm.release.v1.infrastructure-restored.v2")
		expectCare(ctx, t)
	})

	It("is left alone until its next revision, or until a user adopts it", func(ctx SpecContext) {
		t, p := installed(ctx, "not-adopted")
		p = replace(ctx, p, drifting(withoutSource))
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False",
			v1alpha2.VersionNotFoundReason, notTrusted, v1alpha2.AdoptReleaseAnnotation))

		manager := &appsv1.Deployment{}
		manager.Namespace, manager.Name = t.name, t.name+"-controller-manager"
		Expect(w.client.Delete(ctx, manager)).To(Succeed())
		Consistently(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager) }, quietPeriod).
			ShouldNot(Succeed())

		By("adopting it")
		adopt(ctx, p)
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(manager), manager) }).Should(Succeed())
		Expect(history(ctx, t)).To(HaveLen(2))
	})

	It("is not returned to, unless a user adopts it", func(ctx SpecContext) {
		t, p := installed(ctx, "returning")
		one := int64(1)
		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Release = &v1alpha2.ReleaseSpec{RollbackTo: &one}
		})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason, "revision 1 of Helm release",
			v1alpha2.AdoptReleaseAnnotation))
		Expect(history(ctx, t)).To(HaveLen(2))

		By("accepting any, although it knows the newest one")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
		})
		Eventually(w.read(ctx, p)).Should(And(HaveField("Status.ObservedGeneration", p.Generation),
			beStalled(v1alpha2.InstallFailedReason, "revision 1 of Helm release")))

		By("adopting it")
		adopt(ctx, p)
		Eventually(w.read(ctx, p)).Should(HaveField("Status.InstalledVersion", HaveValue(Equal("v1.0.0"))))

		By("removing the annotation")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetAnnotations(nil) })
		expectCare(ctx, t)
		Expect(history(ctx, t)).To(HaveLen(3), "the rollback is the resource's own")
	})

	It("is not the target of an automatic rollback", func(ctx SpecContext) {
		t, p := installed(ctx, "failing")
		broken := newTiny(t.name, "v1.2.0")
		broken.components = strings.Replace(broken.components, "example.com/", "example.com/never-pulled/", 1)
		Expect(w.client.Create(ctx, broken.configMap())).To(Succeed())

		zero := int32(0)
		p = replace(ctx, p, drifting(func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Version = broken.version
			p.Spec.Release = &v1alpha2.ReleaseSpec{Retries: &zero, Timeout: &metav1.Duration{Duration: 3 * time.Second}}
		}))
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "not healthy within 3s"))
		Expect(history(ctx, t)).To(HaveLen(3), "the third one failed, and none follows")
	})

	It("stays when its resource is deleted, with an event that tells", func(ctx SpecContext) {
		t, p := installed(ctx, "kept")
		p = replace(ctx, p, drifting(withoutSource))
		before := w.identities(ctx)
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False",
			v1alpha2.VersionNotFoundReason, notTrusted))

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.identities(ctx)).To(Equal(before))
		Expect(history(ctx, t)).To(HaveLen(2))

		Eventually(func(g Gomega) []eventsv1.Event {
			list := &eventsv1.EventList{}
			g.Expect(w.client.List(ctx, list, client.InNamespace(t.name))).To(Succeed())

			return list.Items
		}).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.ReleaseKeptReason),
			HaveField("Note", ContainSubstring("helm uninstall infrastructure-kept -n kept")))))
	})

	It("blocks the removal of a resource that has installed something", func(ctx SpecContext) {
		t, p := installed(ctx, "blocking")

		Expect(w.operator.Stop()).To(Succeed())

		planted := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: t.name, Name: "sh.helm.release.v1.infrastructure-blocking.v3",
				Labels: map[string]string{
					"owner": "helm", "name": "infrastructure-blocking", "version": "3", "status": "deployed",
					"capstan.dev/revision": "3", "capstan.dev/resource-uid": "another",
				},
			},
			Type: "helm.sh/release.v1",
		}
		Expect(w.client.Create(ctx, planted)).To(Succeed())
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		w.start()
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False", v1alpha2.DeletionBlockedReason,
			"revision 3 of Helm release blocking/infrastructure-blocking", planted.Name))

		By("deleting the record")
		Expect(w.client.Delete(ctx, planted)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"},
			&appsv1.Deployment{})).NotTo(Succeed())
	})

	It("is confirmed once the cluster is what its record says, whether or not a watch tells", func(ctx SpecContext) {
		t := newTiny("equal-again", "v1.0.0")
		t.components += `---
apiVersion: v1
kind: PodTemplate
metadata: {name: equal-again, namespace: equal-again}
template: {spec: {containers: [{name: x, image: example.com/x}]}}
`
		p := t.resource()

		for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		unwatched := &corev1.PodTemplate{}
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(p), unwatched)).To(Succeed())

		p = replace(ctx, p, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Suspend = true

			Expect(w.client.Delete(ctx, unwatched)).To(Succeed())
		})
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False", v1alpha2.SuspendedReason,
			"revision 1 of Helm release"))
		Consistently(w.read(ctx, p), quietPeriod).Should(haveCondition(v1alpha2.ReadyCondition, "False",
			v1alpha2.SuspendedReason, "revision 1 of Helm release"))

		unwatched.ResourceVersion, unwatched.UID = "", ""
		Expect(w.client.Create(ctx, unwatched)).To(Succeed())
		Eventually(w.read(ctx, p)).ShouldNot(haveCondition(v1alpha2.ReadyCondition, "False", v1alpha2.SuspendedReason,
			"revision 1 of Helm release"))
	})

	It("is shown while its resource is suspended", func(ctx SpecContext) {
		_, p := installed(ctx, "suspended")
		p = replace(ctx, p, drifting(func(p *v1alpha2.InfrastructureProvider) { p.Spec.Suspend = true }))
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, "False", v1alpha2.SuspendedReason,
			notTrusted, "nothing is changed while spec.suspend is true"))
	})
})
