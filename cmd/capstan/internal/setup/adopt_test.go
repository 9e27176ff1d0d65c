package setup

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// item returns an item of the inventory, as clusterctl writes it, with further labels.
func item(p v1alpha2.Provider, version string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"providerName": p.GetName(), "type": string(p.ProviderType()), "version": version,
	}}
	o.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("Provider"))
	o.SetNamespace(p.GetNamespace())
	o.SetName(v1alpha2.Label(p))
	o.SetLabels(labels)

	if manager := p.GetSpec().Manager; manager != nil {
		o.Object["watchedNamespace"] = manager.CacheNamespace
	}

	return o
}

// TestReadInventory: providers of clusterctl are found, core first, and those that are named are selected.
func TestReadInventory(t *testing.T) {
	core := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api"}}
	aws := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
	aws.Spec.Manager = &v1alpha2.ManagerSpec{}
	aws.Spec.Manager.CacheNamespace = "team-a"
	kept := map[string]string{v1alpha2.ManagedByLabel: v1alpha2.FieldOwner}

	for name, c := range map[string]struct {
		items     []client.Object
		arguments []string
		want      []string // full names and versions
		err       string
	}{
		"all": {
			items: []client.Object{item(aws, "v2.0.0", nil), item(core, "v1.0.0", nil)},
			want:  []string{"CoreProvider capi-system/cluster-api v1.0.0", "InfrastructureProvider capa-system/aws v2.0.0"},
		},
		"one": {
			items:     []client.Object{item(aws, "v2.0.0", nil), item(core, "v1.0.0", nil)},
			arguments: []string{"infrastructure-aws"}, want: []string{"InfrastructureProvider capa-system/aws v2.0.0"},
		},
		"what Capstan keeps is left out": {
			items: []client.Object{item(core, "v1.0.0", kept), item(aws, "v2.0.0", nil)},
			want:  []string{"InfrastructureProvider capa-system/aws v2.0.0"},
		},
		"also if it is named": {
			items: []client.Object{item(core, "v1.0.0", kept), item(aws, "v2.0.0", nil)}, arguments: []string{"cluster-api"},
		},
		"another one": {
			items: []client.Object{item(core, "v1.0.0", nil)}, arguments: []string{"gcp"},
			err: "provider gcp not found; the existing ones are: cluster-api",
		},
		"an unknown type": {
			items: []client.Object{&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": clusterctlv1.GroupVersion.String(), "kind": "Provider", "type": "X",
				"metadata": map[string]any{"namespace": "a", "name": "x"},
			}}},
			err: `item a/x of the inventory has an unknown type "X"`,
		},
		"nothing": {err: "clusterctl's inventory has no providers; "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			kind := clusterctlv1.GroupVersion.WithKind("Provider")
			scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind("ProviderList"), &unstructured.UnstructuredList{})

			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.items...).Build()

			var selected []v1alpha2.Provider

			found, err := readInventory(t.Context(), &cli.Cluster{Client: reader})
			if err == nil {
				selected, err = found.selected(c.arguments)
			}

			if c.err != "" {
				g.Expect(err).To(MatchError(HavePrefix(c.err)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			var names []string

			for _, p := range selected {
				names = append(names, v1alpha2.FullName(p)+" "+p.GetSpec().Version)

				if p.GetName() == aws.Name {
					g.Expect(p.GetSpec().Manager.CacheNamespace).To(Equal("team-a"))
				}
			}

			g.Expect(names).To(Equal(c.want))
		})
	}
}

// TestDisrupts: other pods and other content of Secrets are, other changes are not.
func TestDisrupts(t *testing.T) {
	object := func(version, kind, field, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind,
			"metadata": map[string]any{"annotations": map[string]any{"value": value}},
			"spec":     map[string]any{field: map[string]any{"a": value}}, field: map[string]any{"a": value},
		}}
	}

	for name, c := range map[string]struct {
		version, kind, field string
		want                 bool
	}{
		"a pod template":                {"apps/v1", "Deployment", "template", true},
		"another field of a Deployment": {"apps/v1", "Deployment", "strategy", false},
		"the content of a Secret":       {"v1", "Secret", "data", true},
		"the marks of a Secret":         {"v1", "Secret", "other", false},
		"the content of a ConfigMap":    {"v1", "ConfigMap", "data", false},
		"another object with templates": {"example.com/v1", "Pool", "template", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := object(c.version, c.kind, c.field, "before")

			g.Expect(disrupts(before, object(c.version, c.kind, c.field, "after"))).To(Equal(c.want))
			g.Expect(disrupts(before, before)).To(BeFalse())
		})
	}
}
