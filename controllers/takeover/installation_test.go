package takeover

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const label = "infrastructure-docker"

var (
	docker = types.NamespacedName{Namespace: "capd", Name: label}

	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	serviceKind    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	inventoryKind  = inventory.GroupVersion().WithKind("Provider")
)

// object returns an object of the provider that may belong to a Helm release.
func object(
	kind schema.GroupVersionKind, namespace, name string, helm types.NamespacedName,
) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha2.ClusterctlProviderLabel: label})

	if helm.Name != "" {
		o.SetAnnotations(map[string]string{
			v1alpha2.HelmReleaseNameAnnotation: helm.Name, v1alpha2.HelmReleaseNamespaceAnnotation: helm.Namespace,
		})
	}

	return o
}

// definition returns a CRD of the provider whose conversion webhook is in a namespace.
func definition(namespace string) *apiextensionsv1.CustomResourceDefinition {
	service := &apiextensionsv1.ServiceReference{Namespace: namespace, Name: "webhook"}
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "dockers.example.com"
	d.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: label}
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: service},
	}}

	return d
}

func newFinder(
	t *testing.T, definitions []client.Object, objects ...runtime.Object,
) (Finder, *metadatafake.FakeMetadataClient) {
	t.Helper()

	scheme := metadatafake.NewTestScheme()
	NewWithT(t).Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())

	cached := runtime.NewScheme()
	NewWithT(t).Expect(apiextensionsv1.AddToScheme(cached)).To(Succeed())

	definitions = append(definitions, inventoryCRD())
	c := metadatafake.NewSimpleMetadataClient(scheme, objects...)

	return Finder{
		Metadata:    c,
		Definitions: fake.NewClientBuilder().WithScheme(cached).WithObjects(definitions...).Build(),
	}, c
}

// inventoryCRD returns the CRD of clusterctl's inventory.
func inventoryCRD() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "providers.clusterctl.cluster.x-k8s.io"

	return d
}

func TestElsewhere(t *testing.T) {
	none := types.NamespacedName{}
	other := types.NamespacedName{Namespace: "apps", Name: "my-docker"}
	deleted := object(deploymentKind, "old", "manager", none)
	deleted.DeletionTimestamp = &metav1.Time{}
	*deleted.DeletionTimestamp = metav1.Now()
	kept := object(inventoryKind, "capd-system", label, none)
	kept.Labels[v1alpha2.ManagedByLabel] = "capstan"
	unrelated := object(deploymentKind, "web", "web", none)
	unrelated.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-aws"}

	for name, c := range map[string]struct {
		objects     []runtime.Object
		definitions []client.Object
		want        *Installation
	}{
		"nothing":                           {},
		"another provider":                  {objects: []runtime.Object{unrelated}},
		"one that is being removed":         {objects: []runtime.Object{deleted}},
		"the same namespace, to be adopted": {objects: []runtime.Object{object(deploymentKind, "capd", "manager", none)}},
		"the same namespace, with clusterctl's inventory": {
			objects: []runtime.Object{object(inventoryKind, "capd", label, none)},
		},
		"the own release in a second namespace": {
			objects: []runtime.Object{object(deploymentKind, "extra", "manager", docker)},
		},
		"an item that Capstan keeps": {objects: []runtime.Object{kept}},
		"clusterctl's inventory": {
			objects: []runtime.Object{object(inventoryKind, "capd-system", label, none)},
			want:    &Installation{"capd-system", "clusterctl's inventory"},
		},
		"a Deployment": {
			objects: []runtime.Object{object(deploymentKind, "capd-system", "manager", none)},
			want:    &Installation{"capd-system", "Deployment manager"},
		},
		"a Helm release of another name": {
			objects: []runtime.Object{object(deploymentKind, "capd-system", "manager", other)},
			want:    &Installation{"capd-system", "Deployment manager of Helm release apps/my-docker"},
		},
		"a conversion webhook": {
			objects:     []runtime.Object{object(serviceKind, "capd-system", "webhook", none)},
			definitions: []client.Object{definition("capd-system")},
			want: &Installation{
				"capd-system", "Service webhook, which converts objects of CustomResourceDefinition dockers.example.com",
			},
		},
		"CRDs that were kept when the provider was removed": {definitions: []client.Object{definition("capd-system")}},
		"CRDs of the same namespace": {
			objects:     []runtime.Object{object(serviceKind, "capd", "webhook", none)},
			definitions: []client.Object{definition("capd")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, _ := newFinder(t, c.definitions, c.objects...)
			found, err := f.Elsewhere(t.Context(), label, docker)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(c.want))
		})
	}
}

func TestAnywhere(t *testing.T) {
	none := types.NamespacedName{}
	deleted := object(deploymentKind, "old", "manager", none)
	deleted.DeletionTimestamp = &metav1.Time{}
	*deleted.DeletionTimestamp = metav1.Now()
	converting := []client.Object{definition("capd")}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)

	for name, c := range map[string]struct {
		objects     []runtime.Object
		definitions []client.Object
		err         error
		want        bool
	}{
		"nothing": {},
		"a Deployment": {
			objects: []runtime.Object{object(deploymentKind, "capd", "m", none)}, want: true,
		},
		"a Deployment of a release": {
			objects: []runtime.Object{object(deploymentKind, "capd", "m", docker)}, want: true,
		},
		"a Deployment that is being deleted": {objects: []runtime.Object{deleted}},
		"clusterctl's inventory": {
			objects: []runtime.Object{object(inventoryKind, "capd", label, none)}, want: true,
		},
		"a conversion webhook": {
			objects: []runtime.Object{object(serviceKind, "capd", "webhook", none)}, definitions: converting, want: true,
		},
		"a conversion webhook that is gone": {definitions: converting},
		"what must not be read":             {err: forbidden, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, fakeClient := newFinder(t, c.definitions, c.objects...)

			if c.err != nil {
				fakeClient.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, c.err
				})
			}

			g.Expect(f.Anywhere(t.Context(), label)).To(Equal(c.want))
		})
	}
}

// TestElsewhereIfRestricted checks that no workload of another namespace is read, and the rest is.
func TestElsewhereIfRestricted(t *testing.T) {
	g := NewWithT(t)
	f, _ := newFinder(t, nil, object(deploymentKind, "capd-system", "manager", types.NamespacedName{}))
	f.Restricted = true
	g.Expect(f.Elsewhere(t.Context(), label, docker)).To(BeNil())

	f, _ = newFinder(t, nil, object(inventoryKind, "capd-system", label, types.NamespacedName{}))
	f.Restricted = true
	g.Expect(f.Elsewhere(t.Context(), label, docker)).NotTo(BeNil())
}

// TestElsewhereWithoutInventory checks that no request is sent for a kind that the cluster does not have.
func TestElsewhereWithoutInventory(t *testing.T) {
	g := NewWithT(t)
	f, fakeClient := newFinder(t, nil)
	g.Expect(f.Definitions.(client.Client).Delete(t.Context(), inventoryCRD())).To(Succeed())

	g.Expect(f.Elsewhere(t.Context(), label, docker)).To(BeNil())
	g.Expect(fakeClient.Actions()).To(HaveLen(1))
	g.Expect(fakeClient.Actions()[0].GetResource()).To(Equal(deployments))
}

// TestElsewhereWithErrors checks that only what must not be read, or does not exist, counts as nothing.
func TestElsewhereWithErrors(t *testing.T) {
	kind := schema.GroupResource{Group: "a", Resource: "b"}

	for name, c := range map[string]struct {
		err    error
		passes bool
	}{
		"a kind that is not served":    {apierrors.NewNotFound(kind, ""), true},
		"a kind that must not be read": {apierrors.NewForbidden(kind, "", nil), true},
		"a server that is overloaded":  {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, fakeClient := newFinder(t, []client.Object{definition("capd-system")})
			fakeClient.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, c.err
			})

			found, err := f.Elsewhere(t.Context(), label, docker)
			g.Expect(found).To(BeNil())
			g.Expect(err == nil).To(Equal(c.passes), "%v", err)
		})
	}
}

// TestElsewhereIsIgnored checks that what is found in a namespace that does not count hides nothing in others.
func TestElsewhereIsIgnored(t *testing.T) {
	none := types.NamespacedName{}

	for name, objects := range map[string][]runtime.Object{
		"the inventory": {object(inventoryKind, "squat", label, none), object(inventoryKind, "capd-system", label, none)},
		"Deployments":   {object(deploymentKind, "squat", "x", none), object(deploymentKind, "capd-system", "x", none)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			service := object(serviceKind, "squat", "webhook", none)

			f, _ := newFinder(t, []client.Object{definition("squat")}, append(objects, service)...)
			f.Ignored = func(namespace string) bool { return namespace == "squat" }
			g.Expect(f.Elsewhere(t.Context(), label, docker)).To(HaveField("Namespace", "capd-system"))

			f.Ignored = func(string) bool { return true }
			g.Expect(f.Elsewhere(t.Context(), label, docker)).To(BeNil())
		})
	}
}
