package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A provider whose objects exist", Ordered, everyKubernetes, ContinueOnFailure, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

	// create offers a provider and creates its resource.
	create := func(ctx context.Context, t tiny, policies *v1alpha2.PoliciesSpec) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		w.offer(ctx, t)
		p := t.resource()
		p.Spec.Policies = policies
		Expect(w.client.Create(ctx, p)).To(Succeed())

		return p
	}
	// running waits until a Deployment is available, and returns the UIDs of its ReplicaSets and pods.
	running := func(ctx context.Context, namespace string) []types.UID {
		GinkgoHelper()

		var uids []types.UID

		Eventually(func(g Gomega) {
			list := &appsv1.DeploymentList{}
			g.Expect(w.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(HaveLen(1))
			g.Expect(list.Items[0].Status.AvailableReplicas).To(BeEquivalentTo(1))

			replicaSets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
			g.Expect(w.client.List(ctx, replicaSets, client.InNamespace(namespace))).To(Succeed())
			g.Expect(w.client.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
			g.Expect(replicaSets.Items).To(HaveLen(1))
			g.Expect(pods.Items).To(HaveLen(1))

			uids = []types.UID{list.Items[0].UID, replicaSets.Items[0].UID, pods.Items[0].UID}
		}).Should(Succeed())

		return uids
	}
	// expectAdopted expects that two objects, the Deployment and the ServiceAccount, are reported and keep running.
	expectAdopted := func(ctx context.Context, p *v1alpha2.InfrastructureProvider, before []types.UID) {
		GinkgoHelper()

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(running(ctx, p.Namespace)).To(Equal(before))
		Expect(p.Status.History).To(HaveExactElements(HaveField("Adopted", 2)))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.AdoptedReason), HaveField("Note", And(
				ContainSubstring("Adopted 2 objects that existed"),
				ContainSubstring("Deployment "+p.Namespace+"/"+p.Name+"-controller-manager"))))))
	}
	// manifest writes the provider's namespaced objects, as they are installed, to a file.
	manifest := func(t tiny) string {
		GinkgoHelper()

		_, objects, found := strings.Cut(t.components, "x-kubernetes-preserve-unknown-fields: true}}\n---\n")
		Expect(found).To(BeTrue())

		objects = strings.NewReplacer(t.name+"-system", t.name, "${TINY_LEVEL:=info}", "info").Replace(objects)
		file := filepath.Join(GinkgoT().TempDir(), "objects.yaml")
		Expect(os.WriteFile(file, []byte(objects), 0o600)).To(Succeed())

		return file
	}

	It("adopts those of kubectl create, and restarts no pod", func(ctx SpecContext) {
		t := newTiny("created", "v1.0.0")
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		w.run(ctx, "kubectl", "create", "-n", t.name, "-f", manifest(t))
		before := running(ctx, t.name)

		expectAdopted(ctx, create(ctx, t, nil), before)
	})

	It("adopts those of clusterctl, and restarts no pod", func(ctx SpecContext) {
		t := newTiny("clusterctl", "v1.0.0")
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		w.createComponents(ctx, t, "clusterctl")
		before := running(ctx, t.name)

		expectAdopted(ctx, create(ctx, t, nil), before)
	})

	It("refuses those of another release until it may adopt all, and restarts no pod then",
		func(ctx SpecContext) {
			t := newTiny("by-helm", "v1.0.0")
			Expect(w.client.Create(ctx, t.namespace())).To(Succeed())

			chart := filepath.Join(GinkgoT().TempDir(), "chart")
			Expect(os.MkdirAll(filepath.Join(chart, "templates"), 0o700)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(chart, "Chart.yaml"),
				[]byte("{apiVersion: v2, name: other, version: 1.0.0}"), 0o600)).To(Succeed())
			Expect(os.Rename(manifest(t), filepath.Join(chart, "templates", "objects.yaml"))).To(Succeed())
			w.run(ctx, "helm", "install", "other", chart, "-n", t.name)
			before := running(ctx, t.name)

			p := create(ctx, t, nil)
			Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
				"belongs to release "+t.name+"/other, so release "+t.name+"/infrastructure-"+t.name+" does not adopt it",
				"and 1 more", "capstan.dev/adoption-policy: Always"))
			Expect(running(ctx, t.name)).To(Equal(before))

			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().Policies = &v1alpha2.PoliciesSpec{Adoption: v1alpha2.AdoptionAlways}
			})
			expectAdopted(ctx, p, before)

			w.run(ctx, "helm", "uninstall", "other", "-n", t.name)

			Eventually(func() []types.UID { return running(ctx, t.name) }).ShouldNot(ContainElements(before))
		})

	It("says which image stays when an upgrade leaves a Deployment to users", func(ctx SpecContext) {
		p := create(ctx, newTiny("left", "v1.0.0"), &v1alpha2.PoliciesSpec{Update: v1alpha2.UpdateOnce})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(p).NotTo(beReadyWith(v1alpha2.HealthyReason, "stays at"))

		w.offer(ctx, newTiny("left", "v1.1.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"), beReadyWith(v1alpha2.HealthyReason,
			"container manager of Deployment left/left-controller-manager stays at the image registry.example.com/left:v1.0.0 "+
				"instead of registry.example.com/left:v1.1.0, because capstan.dev/update-policy is Once")))

		w.run(ctx, "kubectl", "set", "image", "deployment/left-controller-manager", "-n", "left",
			"manager=registry.example.com/left:v1.1.0")
		Eventually(w.read(ctx, p)).ShouldNot(beReadyWith(v1alpha2.HealthyReason, "stays at"))
	})

	It("refuses an object that a controller owns", func(ctx SpecContext) {
		t := newTiny("owned", "v1.0.0")
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		owner := &corev1.ConfigMap{ObjectMeta: named(t.name, "owner")}
		Expect(w.client.Create(ctx, owner)).To(Succeed())

		controller := true
		owned := &corev1.ServiceAccount{ObjectMeta: named(t.name, t.name+"-manager")}
		owned.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &controller,
		}}
		Expect(w.client.Create(ctx, owned)).To(Succeed())

		p := create(ctx, t, nil)
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"ServiceAccount owned/owned-manager is controlled by ConfigMap owner"))
	})

	It("keeps the CRDs of an object that it orphans", func(ctx SpecContext) {
		t := newTiny("keeps-crds", "v1.0.0")
		t.components += "---\napiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: " + t.kind() +
			"\nmetadata: {name: orphan, namespace: keeps-crds-system, annotations: {capstan.dev/delete-policy: Orphan}}\n"
		p := create(ctx, t, nil)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.run(ctx, "kubectl", "annotate", "infrastructureprovider", t.name, "-n", t.name, "capstan.dev/delete-crds=true")
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason,
			"the provider is uninstalled, but its CustomResourceDefinitions are not deleted", "keeps-crds/orphan"))
		w.run(ctx, "kubectl", "get", t.plural(), "orphan", "-n", t.name)

		w.run(ctx, "kubectl", "delete", t.plural(), "orphan", "-n", t.name)
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	It("leaves what it orphans to another release", func(ctx SpecContext) {
		t := newTiny("orphan", "v1.0.0")
		p := create(ctx, t, &v1alpha2.PoliciesSpec{Delete: v1alpha2.DeleteOrphan})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		before := running(ctx, t.name)

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(running(ctx, t.name)).To(Equal(before))

		again := t.resource()
		Expect(w.client.Create(ctx, again)).To(Succeed())
		expectAdopted(ctx, again, before)
	})
})
