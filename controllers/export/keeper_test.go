package export

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var itemKey = types.NamespacedName{Namespace: "capd-system", Name: "infrastructure-docker"}

// newTestKeeper returns a keeper of a cluster with these objects, and the events that it emits.
func newTestKeeper(t *testing.T, objects ...client.Object) (*keeper, chan string) {
	t.Helper()

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(clusterctlv1.AddToScheme(scheme)).To(Succeed())

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	recorder := events.NewFakeRecorder(10)

	return &keeper{
		providers: c, items: c, client: c, events: recorder, written: map[types.NamespacedName]writtenItem{},
		includes: func(client.Object) bool { return true },
	}, recorder.Events
}

// docker returns an installed provider with revisions, newest first, as status and version.
func docker(revisions ...[2]string) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
	p.Status.ObservedGeneration = 1

	for _, r := range revisions {
		p.Status.Release = &v1alpha2.ReleaseStatus{Status: revisions[0][0]}
		p.Status.History = append(p.Status.History, v1alpha2.ReleaseRevision{Status: r[0], Version: r[1]})
	}

	return p
}

func (k *keeper) reconcile(t *testing.T) *clusterctlv1.Provider {
	t.Helper()

	_, err := k.Reconcile(t.Context(), reconcile.Request{NamespacedName: itemKey})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	item := &clusterctlv1.Provider{}
	if err := k.items.Get(t.Context(), itemKey, item); err != nil {
		NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
		return nil
	}

	return item
}

func TestItem(t *testing.T) {
	remote := docker([2]string{"deployed", "v1.0.0"})
	remote.Spec.KubeConfig = &v1alpha2.KubeConfig{}

	leaving := docker([2]string{"deployed", "v1.0.0"})
	leaving.Finalizers = []string{v1alpha2.Finalizer}
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}

	for name, c := range map[string]struct {
		provider *v1alpha2.InfrastructureProvider
		version  string
	}{
		"not installed":         {provider: docker()},
		"installed":             {provider: docker([2]string{"deployed", "v1.0.0"}), version: "v1.0.0"},
		"being installed":       {provider: docker([2]string{"pending-install", "v1.0.0"})},
		"being upgraded":        {docker([2]string{"pending-upgrade", "v1.1.0"}, [2]string{"deployed", "v1.0.0"}), "v1.0.0"},
		"rolled back":           {docker([2]string{"deployed", "v1.0.0"}, [2]string{"failed", "v1.1.0"}), "v1.0.0"},
		"uninstalled with helm": {provider: docker([2]string{"uninstalled", "v1.0.0"})},
		"in another cluster":    {provider: remote},
		"being removed":         {provider: leaving},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			k, _ := newTestKeeper(t, c.provider)

			item := k.reconcile(t)
			if c.version == "" {
				g.Expect(item).To(BeNil())
				return
			}

			g.Expect(item.Version).To(Equal(c.version))
			g.Expect(item.ProviderName).To(Equal("docker"))
			g.Expect(item.GetProviderType()).To(Equal(clusterctlv1.InfrastructureProviderType))
			g.Expect(item.ManifestLabel()).To(Equal(item.Name))
			g.Expect(item.Labels).To(Equal(map[string]string{
				"clusterctl.cluster.x-k8s.io":      "",
				"clusterctl.cluster.x-k8s.io/core": "inventory",
				"cluster.x-k8s.io/provider":        "infrastructure-docker",
				"app.kubernetes.io/managed-by":     "capstan",
			}))

			version := item.ResourceVersion
			g.Expect(k.reconcile(t).ResourceVersion).To(Equal(version), "nothing is written again")
		})
	}
}

func TestWatchedNamespace(t *testing.T) {
	g := NewWithT(t)
	p := docker([2]string{"deployed", "v1.0.0"})
	k, _ := newTestKeeper(t, p)
	g.Expect(k.reconcile(t)).To(HaveField("WatchedNamespace", BeEmpty()))

	p.Spec.Manager = &v1alpha2.ManagerSpec{}
	p.Spec.Manager.CacheNamespace = "team-a"
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t)).To(HaveField("WatchedNamespace", "team-a"))
}

func TestExpectedErrors(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "infrastructure-docker", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "infrastructure-docker", nil)

	g := NewWithT(t)
	g.Expect(ignoreExpected(terminating)).To(Succeed())
	g.Expect(ignoreExpected(apierrors.NewConflict(schema.GroupResource{}, "", nil))).To(Succeed())
	g.Expect(ignoreExpected(forbidden)).To(Equal(error(forbidden)))
	g.Expect(ignoreExpected(nil)).To(Succeed())
}

func TestItemFollowsItsProvider(t *testing.T) {
	g := NewWithT(t)
	p := docker([2]string{"deployed", "v1.0.0"})
	k, announced := newTestKeeper(t, p)
	k.reconcile(t)

	p.Status = docker([2]string{"deployed", "v1.1.0"}, [2]string{"superseded", "v1.0.0"}).Status
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t).Version).To(Equal("v1.1.0"))

	p.Status = docker([2]string{"failed", "v1.2.0"}, [2]string{"superseded", "v1.1.0"}).Status
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t).Version).To(Equal("v1.1.0"), "while nothing is deployed, the last version stays")

	// -1 is the default of the API server for a resource that was created again, and 0 that of a status that is empty.
	for _, lost := range []int64{-1, 0} {
		p.Status = v1alpha2.ProviderStatus{ObservedGeneration: lost}
		g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
		g.Expect(k.reconcile(t)).To(HaveField("Version", "v1.1.0"), "the status was lost")
	}

	p.Status.ObservedGeneration = 1
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t)).To(BeNil(), "not installed")

	p.Status = docker([2]string{"deployed", "v1.0.0"}).Status
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t)).NotTo(BeNil(), "installed again")

	g.Expect(k.client.Delete(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t)).To(BeNil(), "the resource is gone")
	g.Expect(announced).To(BeEmpty())
}

// TestItemOfAProviderThatStays: the annotation is in the item before the resource is gone, because nothing tells later
// that the provider is still installed.
func TestItemOfAProviderThatStays(t *testing.T) {
	g := NewWithT(t)
	p := docker([2]string{"deployed", "v1.0.0"})
	k, announced := newTestKeeper(t, p)
	k.reconcile(t)

	p.Annotations = map[string]string{v1alpha2.KeepInstalledAnnotation: "true"}
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(isOwn(k.reconcile(t))).To(BeTrue(), "the resource exists")

	p.Annotations = nil
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t).Annotations).To(BeEmpty(), "the annotation was withdrawn")

	p.Annotations = map[string]string{v1alpha2.KeepInstalledAnnotation: "true"}
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())
	k.reconcile(t)

	g.Expect(k.client.Delete(t.Context(), p)).To(Succeed())

	item := k.reconcile(t)
	g.Expect(item).NotTo(BeNil())
	g.Expect(isOwn(item)).To(BeFalse())
	g.Expect(item.Annotations).To(BeEmpty())
	g.Expect(item.Version).To(Equal("v1.0.0"))
	g.Expect(k.reconcile(t)).To(Equal(item), "it is clusterctl's")
	g.Expect(announced).To(BeEmpty())
}

func TestItemsOfClusterctl(t *testing.T) {
	g := NewWithT(t)
	item := &clusterctlv1.Provider{
		ObjectMeta:   metav1.ObjectMeta{Namespace: itemKey.Namespace, Name: itemKey.Name},
		ProviderName: "docker", Type: "InfrastructureProvider", Version: "v0.9.0",
	}
	k, announced := newTestKeeper(t, item)

	g.Expect(k.reconcile(t)).NotTo(BeNil(), "the provider has no resource")

	p := docker()
	g.Expect(k.client.Create(t.Context(), p)).To(Succeed())
	g.Expect(k.reconcile(t).Version).To(Equal("v0.9.0"), "the provider is not adopted yet")

	p.Status = docker([2]string{"deployed", "v1.0.0"}).Status
	g.Expect(k.client.Update(t.Context(), p)).To(Succeed())

	adopted := k.reconcile(t)
	g.Expect(adopted.Version).To(Equal("v1.0.0"))
	g.Expect(isOwn(adopted)).To(BeTrue())
	g.Expect(announced).To(BeEmpty())
}

func TestChangesByOthersAreUndoneAndAnnounced(t *testing.T) {
	g := NewWithT(t)
	k, announced := newTestKeeper(t, docker([2]string{"deployed", "v1.0.0"}))
	item := k.reconcile(t)

	item.Version = "v1.1.0"
	item.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "clusterctl", Time: &metav1.Time{}}}
	g.Expect(k.client.Update(t.Context(), item)).To(Succeed())
	g.Expect(k.reconcile(t).Version).To(Equal("v1.0.0"))
	g.Expect(announced).To(Receive(And(
		ContainSubstring("InventoryRestored"), ContainSubstring("infrastructure-docker was set to v1.1.0 by "),
		ContainSubstring("capstan upgrade apply"))))

	g.Expect(k.client.Delete(t.Context(), k.reconcile(t))).To(Succeed())
	g.Expect(k.reconcile(t)).NotTo(BeNil())
	g.Expect(announced).To(Receive(And(ContainSubstring("was deleted"), ContainSubstring("capstan delete"))))

	k.reconcile(t)
	g.Expect(announced).To(BeEmpty())
}

func TestOutdatedCacheIsNoChangeByOthers(t *testing.T) {
	g := NewWithT(t)
	k, announced := newTestKeeper(t, docker([2]string{"deployed", "v1.0.0"}))
	item := k.reconcile(t)

	// An upgrade was rolled back before the cache of the items had its version.
	k.written[itemKey] = writtenItem{uid: item.UID, version: "v1.1.0"}

	k.reconcile(t)
	g.Expect(announced).To(BeEmpty())
}

func TestScope(t *testing.T) {
	k, _ := newTestKeeper(t, docker([2]string{"deployed", "v1.0.0"}))
	k.includes = func(o client.Object) bool { return o.GetLabels()["team"] == "a" }
	NewWithT(t).Expect(k.reconcile(t)).To(BeNil(), "another operator manages it")
}
