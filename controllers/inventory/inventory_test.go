package inventory

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var itemKey = client.ObjectKey{Namespace: "capd-system", Name: "infrastructure-docker"}

// newInventory returns an inventory with these items.
func newInventory(t *testing.T, items ...client.Object) *Inventory {
	t.Helper()

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(clusterctlv1.AddToScheme(scheme)).To(Succeed())

	return &Inventory{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(items...).Build(),
		Wake:   func(string, string, time.Duration) { t.Error("a write failed") },
	}
}

// item returns the item of docker; nil if there is none.
func (i *Inventory) item(t *testing.T) *clusterctlv1.Provider {
	t.Helper()

	item := &clusterctlv1.Provider{}
	if err := i.Client.Get(t.Context(), itemKey, item); err != nil {
		NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
		return nil
	}

	return item
}

// docker returns an installed provider with revisions, newest first, as status and version.
func docker(revisions ...[2]string) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: itemKey.Namespace, Name: "docker"}}

	for _, r := range revisions {
		status := v1alpha2.RevisionStatus(r[0])
		p.Status.Release = &v1alpha2.ReleaseStatus{Status: v1alpha2.RevisionStatus(revisions[0][0])}
		p.Status.History = append(p.Status.History, v1alpha2.ReleaseRevision{Status: status, Version: r[1]})
	}

	return p
}

// deleted returns a provider whose resource is being deleted, with an annotation.
func deleted(annotation string) *v1alpha2.InfrastructureProvider {
	p := docker([2]string{"deployed", "v1.0.0"})
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	p.Annotations = map[string]string{annotation: "true"}

	return p
}

func TestItem(t *testing.T) {
	remote := docker([2]string{"deployed", "v1.0.0"})
	remote.Spec.KubeConfig = &v1alpha2.KubeConfig{}

	for name, c := range map[string]struct {
		provider *v1alpha2.InfrastructureProvider
		version  string
	}{
		"not installed":         {provider: docker()},
		"installed":             {docker([2]string{"deployed", "v1.0.0"}), "v1.0.0"},
		"being installed":       {provider: docker([2]string{"pending-install", "v1.0.0"})},
		"being upgraded":        {docker([2]string{"pending-upgrade", "v1.1.0"}, [2]string{"deployed", "v1.0.0"}), "v1.0.0"},
		"rolled back":           {docker([2]string{"deployed", "v1.0.0"}, [2]string{"failed", "v1.1.0"}), "v1.0.0"},
		"uninstalled with helm": {provider: docker([2]string{"uninstalled", "v1.0.0"})},
		"in another cluster":    {provider: remote},
		"being removed":         {provider: deleted("a")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := newInventory(t)
			i.Update(t.Context(), c.provider, false)

			item := i.item(t)
			if c.version == "" {
				g.Expect(item).To(BeNil())
				return
			}

			g.Expect(item.Version).To(Equal(c.version))
			g.Expect(item.ProviderName).To(Equal("docker"))
			g.Expect(item.Type).To(Equal("InfrastructureProvider"))
			g.Expect(item.Labels).To(Equal(map[string]string{
				"clusterctl.cluster.x-k8s.io":      "",
				"clusterctl.cluster.x-k8s.io/core": "inventory",
				"cluster.x-k8s.io/provider":        "infrastructure-docker",
				"app.kubernetes.io/managed-by":     "capstan",
			}))
		})
	}
}

func TestItemFollowsItsProvider(t *testing.T) {
	g := NewWithT(t)
	i := newInventory(t)
	i.Update(t.Context(), docker([2]string{"deployed", "v1.0.0"}), false)

	p := docker([2]string{"deployed", "v1.1.0"}, [2]string{"superseded", "v1.0.0"})
	p.Spec.Manager = &v1alpha2.ManagerSpec{CacheNamespace: "berlin"}
	i.Update(t.Context(), p, true)
	g.Expect(i.item(t)).To(And(HaveField("Version", "v1.1.0"), HaveField("WatchedNamespace", "berlin")))

	i.Update(t.Context(), docker([2]string{"failed", "v1.2.0"}, [2]string{"superseded", "v1.1.0"}), true)
	g.Expect(i.item(t)).To(And(HaveField("Version", "v1.1.0"), HaveField("WatchedNamespace", "berlin")),
		"while nothing is deployed, the item stays")

	before := i.item(t)
	i.Update(t.Context(), p, true)
	g.Expect(i.item(t)).To(Equal(before), "nothing is written")

	i.Update(t.Context(), docker(), false)
	g.Expect(i.item(t)).To(Equal(before), "the status was lost")

	i.Update(t.Context(), docker([2]string{"uninstalled", "v1.1.0"}), true)
	g.Expect(i.item(t)).To(BeNil())
}

// TestItemRequests: a new item takes one request, and one that another program has written becomes the provider's.
func TestItemRequests(t *testing.T) {
	installed := docker([2]string{"deployed", "v1.0.0"})
	other := itemOf(installed)
	other.Version = "v0.9.0"

	for name, c := range map[string]struct {
		items    []client.Object
		listed   bool
		requests []string
	}{
		"new":                        {nil, false, []string{"create"}},
		"of another program":         {[]client.Object{other}, false, []string{"create", "get", "patch"}},
		"of another version":         {[]client.Object{other}, true, []string{"get", "patch"}},
		"deleted by another program": {nil, true, []string{"get", "create"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := newInventory(t, c.items...)

			var requests []string

			i.Client = interceptor.NewClient(i.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(
					ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
				) error {
					requests = append(requests, "get")
					return to.Get(ctx, key, o, options...)
				},
				Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
					requests = append(requests, "create")
					return to.Create(ctx, o, options...)
				},
				Patch: func(
					ctx context.Context, to client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption,
				) error {
					requests = append(requests, "patch")
					return to.Patch(ctx, o, patch, options...)
				},
			})

			g.Expect(i.Update(t.Context(), installed, c.listed)).To(BeTrue())
			g.Expect(requests).To(Equal(c.requests))
			g.Expect(i.item(t)).To(HaveField("Version", "v1.0.0"))
		})
	}
}

func TestRemove(t *testing.T) {
	g := NewWithT(t)
	i := newInventory(t)
	i.Update(t.Context(), docker([2]string{"deployed", "v1.0.0"}), false)

	g.Expect(i.Remove(t.Context(), deleted(v1alpha2.KeepInstalledAnnotation))).To(Succeed())

	item := i.item(t)
	g.Expect(item).NotTo(BeNil(), "the provider stays installed")
	g.Expect(item.Labels).NotTo(HaveKey(v1alpha2.ManagedByLabel), "the item is clusterctl's")

	g.Expect(i.Remove(t.Context(), deleted("a"))).To(Succeed())
	g.Expect(i.item(t)).To(Equal(item))

	i.Update(t.Context(), docker([2]string{"deployed", "v1.0.0"}), false)
	g.Expect(i.item(t).Labels).To(HaveKey(v1alpha2.ManagedByLabel), "it is adopted")

	g.Expect(i.Remove(t.Context(), deleted("a"))).To(Succeed())
	g.Expect(i.item(t)).To(BeNil())
	g.Expect(i.Remove(t.Context(), deleted("a"))).To(Succeed())
}

func TestWithoutInventory(t *testing.T) {
	var none *Inventory

	none.Update(t.Context(), docker([2]string{"deployed", "v1.0.0"}), false)
	NewWithT(t).Expect(none.Remove(t.Context(), deleted("a"))).To(Succeed())
}
