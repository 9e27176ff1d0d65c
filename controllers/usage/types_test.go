package usage

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestManagedTypes(t *testing.T) {
	g := NewWithT(t)

	p := &v1alpha2.InfrastructureProvider{}
	p.Name = "aws"
	g.Expect(ManagedTypes(p)).To(BeEmpty())

	p.Name = "azure"
	g.Expect(ManagedTypes(p)).To(Equal([]v1alpha2.ManagedType{{Group: "*.azure.com"}}))

	p.Spec.AdditionalManagedTypes = []v1alpha2.ManagedType{{Group: "example.com"}}
	g.Expect(ManagedTypes(p)).To(Equal(p.Spec.AdditionalManagedTypes), "given types replace the default ones")
}

func TestTypesByLabel(t *testing.T) {
	g := NewWithT(t)
	byDefault := map[string][]v1alpha2.ManagedType{"infrastructure-azure": {{Group: "*.azure.com"}}}
	g.Expect(TypesByLabel(nil)).To(Equal(byDefault))

	aws, azure := &v1alpha2.InfrastructureProvider{}, &v1alpha2.InfrastructureProvider{}
	aws.Name, azure.Name = "aws", "azure"
	g.Expect(TypesByLabel([]v1alpha2.Provider{aws, azure})).To(Equal(byDefault))

	aws.Spec.AdditionalManagedTypes = []v1alpha2.ManagedType{{Group: "example.com"}}
	azure.Spec.AdditionalManagedTypes = []v1alpha2.ManagedType{}
	g.Expect(TypesByLabel([]v1alpha2.Provider{aws, azure})).To(Equal(map[string][]v1alpha2.ManagedType{
		"infrastructure-aws": aws.Spec.AdditionalManagedTypes,
	}), "an empty list turns the default off")
}

func TestManagedCRDs(t *testing.T) {
	g := NewWithT(t)
	network := crd("", "VirtualNetwork", "virtualnetworks", apiextensionsv1.NamespaceScoped, true)
	network.Labels, network.Name, network.Spec.Group = nil, "virtualnetworks.network.azure.com", "network.azure.com"

	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		network, crd("infrastructure-azure", "AzureCluster", "azureclusters", apiextensionsv1.NamespaceScoped, true)).Build()

	p := &v1alpha2.InfrastructureProvider{}
	p.Name = "azure"
	p.Spec.AdditionalManagedTypes = []v1alpha2.ManagedType{
		{Group: "*.azure.com"}, {Group: network.Spec.Group}, {Group: "example.com", Kind: "Database"},
	}

	names, undefined, err := ManagedCRDs(t.Context(), reader, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(Equal([]string{network.Name}))
	g.Expect(undefined).To(HaveExactElements(HaveField("String()", "Database.example.com")))

	p.Name, p.Spec.AdditionalManagedTypes = "aws", nil
	names, undefined, err = ManagedCRDs(t.Context(), nil, p)
	g.Expect(err).NotTo(HaveOccurred(), "nothing is read for a provider without such types")
	g.Expect(names).To(BeEmpty())
	g.Expect(undefined).To(BeEmpty())
}

func TestManages(t *testing.T) {
	d := crd("", "VirtualNetwork", "virtualnetworks", apiextensionsv1.NamespaceScoped, true)
	d.Labels = nil
	d.Spec.Group = "network.azure.com"

	for selected, want := range map[v1alpha2.ManagedType]bool{
		{Group: "network.azure.com"}:                         true,
		{Group: "*.azure.com"}:                               true,
		{Group: "*.com"}:                                     true,
		{Group: "azure.com"}:                                 false,
		{Group: "*.network.azure.com"}:                       false,
		{Group: "*.zure.com"}:                                false,
		{Group: "*.azure.com", Kind: "VirtualNetwork"}:       true,
		{Group: "network.azure.com", Kind: "VirtualMachine"}: false,
	} {
		types := []v1alpha2.ManagedType{{Group: "other.example"}, selected}
		NewWithT(t).Expect(Manages(types, "infrastructure-azure", d)).To(Equal(want), "%v", selected)
	}

	NewWithT(t).Expect(Manages(nil, "infrastructure-azure", d)).To(BeFalse())

	for label, want := range map[string]bool{"infrastructure-other": false, "infrastructure-azure": true} {
		d.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: label}
		NewWithT(t).Expect(Manages([]v1alpha2.ManagedType{{Group: "*.azure.com"}}, "infrastructure-azure", d)).To(
			Equal(want), "a manager may give the CRDs that it creates the label of its provider")
	}

	d.Annotations = map[string]string{v1alpha2.Prefix + "/crd-digest": "0"}
	NewWithT(t).Expect(Manages([]v1alpha2.ManagedType{{Group: "*.azure.com"}}, "infrastructure-azure", d)).To(
		BeFalse(), "it is the provider's own")
}
