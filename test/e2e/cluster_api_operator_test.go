package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/takeover"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// peer is cluster-api-operator, installed in a world.
type peer struct {
	*harness.Peer
	w       *world
	process *harness.Operator
	log     string
}

// peerDeployment is the Deployment of the manager.
var peerDeployment = client.ObjectKey{Namespace: "capi-operator-system", Name: "capi-operator-controller-manager"}

// newPeer installs cluster-api-operator into a world without starting it.
func newPeer(ctx context.Context, w *world) *peer {
	GinkgoHelper()

	dir := GinkgoT().TempDir()
	manager, err := harness.NewPeer(dir)
	Expect(err).NotTo(HaveOccurred())
	Expect(manager.Apply(ctx, w.client)).To(Succeed())

	return &peer{Peer: manager, w: w, log: filepath.Join(dir, "log")}
}

// start starts the manager.
func (p *peer) start(ctx context.Context) {
	GinkgoHelper()

	p.scale(ctx, 1)

	var err error

	p.process, err = p.Start(p.w.bed, p.log)
	Expect(err).NotTo(HaveOccurred())
}

// stop stops the manager, as scaling its Deployment does.
func (p *peer) stop(ctx context.Context) {
	GinkgoHelper()

	p.scale(ctx, 0)
	p.kill()
}

func (p *peer) kill() {
	if p.process != nil {
		Expect(p.process.Kill()).To(Succeed())
		p.process = nil
	}
}

// scale sets the replicas of the manager's Deployment, and waits for its pods.
func (p *peer) scale(ctx context.Context, replicas int) {
	GinkgoHelper()

	p.w.run(ctx, "kubectl", "scale", "deployment", "--namespace", peerDeployment.Namespace,
		"--selector", "clusterctl.cluster.x-k8s.io/core=capi-operator", fmt.Sprint("--replicas=", replicas))
	Eventually(func(g Gomega) []corev1.Pod {
		pods := &corev1.PodList{}
		g.Expect(p.w.client.List(ctx, pods, client.InNamespace(peerDeployment.Namespace))).To(Succeed())

		return pods.Items
	}).Should(HaveLen(replicas))
}

// identities returns those of providers' objects and of Clusters, without what belongs to cluster-api-operator.
func (p *peer) identities(ctx context.Context) map[string]string {
	GinkgoHelper()

	all := withoutPredecessor(p.w.identities(ctx))

	clusters := &unstructured.UnstructuredList{}
	clusters.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"})
	Expect(p.w.client.List(ctx, clusters)).To(Succeed())

	for _, c := range clusters.Items {
		all["Cluster "+c.GetName()] = fmt.Sprint(c.GetUID(), ", generation ", c.GetGeneration())
	}

	return all
}

// withoutPredecessor removes what belongs to cluster-api-operator from the result of identities.
func withoutPredecessor(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.Contains(key, " "+peerDeployment.Namespace+"/") })

	return all
}

// changed returns what differs between two results of identities.
func changed(before, after map[string]string) []string {
	var differences []string

	for key, was := range before {
		if now := after[key]; now != was {
			differences = append(differences, fmt.Sprintf("%s: %q is now %q", key, was, now))
		}
	}

	for key := range after {
		if before[key] == "" {
			differences = append(differences, key+" is new")
		}
	}

	slices.Sort(differences)

	return differences
}

// minorBehind are the standard providers, one minor version behind.
var minorBehind = []harness.Wanted{
	{Label: "cluster-api", Version: "v1.12.11"},
	{Label: "bootstrap-kubeadm", Version: "v1.12.11"},
	{Label: "control-plane-kubeadm", Version: "v1.12.11"},
	{Label: "infrastructure-docker", Version: "v1.12.11"},
	{Label: "infrastructure-aws", Version: "v2.10.3", Variables: harness.AWSVariables},
}

var _ = Describe("The real cluster-api-operator", Ordered, func() {
	var (
		w         *world
		p         *peer
		folder    string
		providers []v1alpha2.Provider
		before    map[string]string
	)

	BeforeAll(func(ctx SpecContext) {
		folder = testproviders.Folder(GinkgoT())

		if !harness.HasPeer() {
			Skip(harness.PeerVariable + " does not name its manager")
		}

		w = emptyWorld(bed.Options{})
		w.createOperatorDeployment(ctx)

		p = newPeer(ctx, w)
		DeferCleanup(p.kill)
		p.start(ctx)
	})

	It("installs five providers", func(ctx SpecContext) {
		for _, wanted := range minorBehind {
			release, err := harness.Load(ctx, folder, wanted)
			Expect(err).NotTo(HaveOccurred())
			Expect(release.Prepare(ctx, w.client)).To(Succeed())

			provider := release.PeerResource()

			// The webhooks may not respond yet.
			Eventually(func() error { return w.client.Create(ctx, provider) }).Should(Succeed())

			providers = append(providers, provider)
		}

		for _, provider := range providers {
			Eventually(w.read(ctx, provider)).WithTimeout(3 * time.Minute).Should(
				haveCondition(v1alpha2.ReadyCondition, metav1.ConditionTrue, "MinimumReplicasAvailable"))
		}

		w.createClusters(ctx)
		before = p.identities(ctx)
	})

	It("is found to run", func(ctx SpecContext) {
		w.run(ctx, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(root, "charts/capstan/crds"))
		w.start("--upgrade-crds")

		for _, provider := range providers {
			Eventually(w.read(ctx, provider)).Should(notBeReady(v1alpha2.OtherOperatorRunningReason,
				"in pod "+peerDeployment.Namespace+"/", "--namespace "+peerDeployment.Namespace))
		}

		Expect(changed(before, p.identities(ctx))).To(BeEmpty())
	})

	It("hands its providers over, and nothing of them changes", func(ctx SpecContext) {
		p.handOver(ctx, providers)

		for i, provider := range providers {
			Eventually(w.read(ctx, provider)).Should(And(
				beReady(minorBehind[i].Version),
				HaveField("Finalizers", ConsistOf(v1alpha2.Finalizer)),
				HaveField("Status.Release", HaveField("Revision", BeEquivalentTo(1)))))
		}

		Expect(changed(before, p.identities(ctx))).To(BeEmpty())
		expectHandedOver(ctx, w)
	})

	It("leaves providers that can be upgraded and removed", func(ctx SpecContext) {
		for i, wanted := range harness.Standard {
			release, err := harness.Load(ctx, folder, wanted)
			Expect(err).NotTo(HaveOccurred())
			Expect(release.Prepare(ctx, w.client)).To(Succeed())
			update(ctx, w, providers[i], func(p v1alpha2.Provider) { p.GetSpec().Version = wanted.Version })
			Eventually(w.read(ctx, providers[i])).WithTimeout(3 * time.Minute).Should(beReady(wanted.Version))
		}

		for _, i := range []int{4, 3, 2, 1} {
			Expect(w.client.Delete(ctx, providers[i])).To(Succeed())
			Eventually(gone(ctx, w, providers[i])).Should(BeTrue())
		}
	})
})

// handOver stops the manager first, and deletes its webhooks after they have refused Capstan's changes.
func (p *peer) handOver(ctx context.Context, providers []v1alpha2.Provider) {
	GinkgoHelper()

	p.stop(ctx)

	for _, provider := range providers {
		Eventually(p.w.read(ctx, provider)).Should(notBeReady(v1alpha2.ChangeRefusedReason, "delete its webhooks"))
	}

	p.w.run(ctx, "kubectl", "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations",
		"--selector", takeover.PredecessorSelector)
}

// expectHandedOver checks that cluster-api-operator has left nothing on Capstan's CRDs and on providers' objects.
func expectHandedOver(ctx context.Context, w *world) {
	GinkgoHelper()

	for _, t := range v1alpha2.ProviderTypes() {
		mapping, err := w.client.RESTMapper().RESTMapping(v1alpha2.GroupVersion.WithKind(string(t)).GroupKind())
		Expect(err).NotTo(HaveOccurred())

		crd := w.definition(ctx, mapping.Resource.GroupResource().String())
		Expect(crd.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
		Expect(crd.Labels).NotTo(HaveKey(takeover.PredecessorLabel))
	}

	deployments := &appsv1.DeploymentList{}
	Expect(w.client.List(ctx, deployments, client.HasLabels{v1alpha2.ClusterctlProviderLabel})).To(Succeed())
	Expect(deployments.Items).To(HaveLen(len(minorBehind)))

	for _, d := range deployments.Items {
		Expect(d.OwnerReferences).To(BeEmpty(), d.Name)
	}
}

// createClusters creates Clusters. The webhooks of core, which do not respond here, are removed meanwhile.
func (w *world) createClusters(ctx context.Context) {
	GinkgoHelper()

	var webhooks []unstructured.Unstructured

	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind,
		})
		Expect(w.client.List(ctx, list, client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: "cluster-api"})).To(Succeed())

		webhooks = append(webhooks, list.Items...)
	}

	for i := range webhooks {
		Expect(w.client.Delete(ctx, &webhooks[i])).To(Succeed())
		webhooks[i].SetResourceVersion("")
	}

	for _, name := range []string{"first", "second"} {
		cluster := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
			"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": name},
			"spec": map[string]any{"paused": true, "infrastructureRef": map[string]any{
				"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerCluster", "name": name,
			}},
		}}

		Eventually(func() error { return w.client.Create(ctx, cluster) }).Should(Succeed())
	}

	for i := range webhooks {
		Expect(w.client.Create(ctx, &webhooks[i])).To(Succeed())
	}
}
