package v1alpha2_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Every provider can be passed to the functions that read and write conditions.
var _ conditions.Setter = v1alpha2.Provider(nil)

var clusterctlTypes = []clusterctlv1.ProviderType{
	clusterctlv1.CoreProviderType,
	clusterctlv1.BootstrapProviderType,
	clusterctlv1.ControlPlaneProviderType,
	clusterctlv1.InfrastructureProviderType,
	clusterctlv1.IPAMProviderType,
	clusterctlv1.RuntimeExtensionProviderType,
	clusterctlv1.AddonProviderType,
}

func TestProviderTypes(t *testing.T) {
	// The names are cluster-api-operator's, the files clusterctl's provider contract's. Values,
	// order and labels are compared with clusterctl's code.
	for i, c := range []struct {
		providerType v1alpha2.ProviderType
		name, file   string
	}{
		{v1alpha2.CoreProviderType, "core", "core-components.yaml"},
		{v1alpha2.BootstrapProviderType, "bootstrap", "bootstrap-components.yaml"},
		{v1alpha2.ControlPlaneProviderType, "control-plane", "control-plane-components.yaml"},
		{v1alpha2.InfrastructureProviderType, "infrastructure", "infrastructure-components.yaml"},
		{v1alpha2.IPAMProviderType, "ipam", "ipam-components.yaml"},
		{v1alpha2.RuntimeExtensionProviderType, "runtimeextension", "runtime-extension-components.yaml"},
		{v1alpha2.AddonProviderType, "addon", "addon-components.yaml"},
	} {
		t.Run(string(c.providerType), func(t *testing.T) {
			g := NewWithT(t)

			clusterctlType := clusterctlTypes[i]
			g.Expect(string(c.providerType)).To(Equal(string(clusterctlType)))
			g.Expect(clusterctlType.Order()).To(Equal(i))
			g.Expect(v1alpha2.ProviderTypes()[i]).To(Equal(c.providerType))
			g.Expect(c.providerType.Name()).To(Equal(c.name))
			g.Expect(c.providerType.ComponentsFile()).To(Equal(c.file))

			label := clusterctlv1.ManifestLabel("some-name", clusterctlType)
			g.Expect(c.providerType.Label("some-name")).To(Equal(label))
			parsedType, parsedName := v1alpha2.ParseLabel(label)
			g.Expect(parsedType).To(Equal(c.providerType))
			g.Expect(parsedName).To(Equal("some-name"))

			provider := c.providerType.New()
			provider.SetName("some-name")
			g.Expect(provider.ProviderType()).To(Equal(c.providerType))
			g.Expect(v1alpha2.Label(provider)).To(Equal(label))
		})
	}

	NewWithT(t).Expect(v1alpha2.ProviderTypes()).To(HaveLen(7))
}

func TestUnknownProviderType(t *testing.T) {
	g := NewWithT(t)
	unknown := v1alpha2.ProviderType("Secret")
	g.Expect(unknown.ComponentsFile()).To(BeEmpty())
	g.Expect(unknown.New()).To(BeNil())
	g.Expect(unknown.NewList()).To(BeNil())
}

func TestAddToScheme(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	for _, providerType := range v1alpha2.ProviderTypes() {
		kind := providerType.GroupVersionKind()
		object, err := scheme.New(kind)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(object).To(Equal(providerType.New()))

		kind.Kind += "List"
		list, err := scheme.New(kind)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(Equal(providerType.NewList()))
	}
}

func TestAccessors(t *testing.T) {
	g := NewWithT(t)
	list := &v1alpha2.AddonProviderList{Items: make([]v1alpha2.AddonProvider, 2)}
	provider := list.GetItems()[1]
	provider.SetName("helm")
	provider.GetSpec().Version = "v1.0.0"
	provider.GetStatus().DesiredVersion = "v1.0.0"
	provider.SetConditions([]metav1.Condition{{Type: v1alpha2.ReadyCondition}})

	changed := list.Items[1]
	g.Expect(list.GetItems()).To(HaveLen(2))
	g.Expect(changed.Name).To(Equal("helm"))
	g.Expect(changed.Spec.Version).To(Equal("v1.0.0"))
	g.Expect(changed.Status.DesiredVersion).To(Equal("v1.0.0"))
	g.Expect(provider.GetConditions()).To(Equal(changed.Status.Conditions))
	g.Expect(list.Items[0]).To(Equal(v1alpha2.AddonProvider{}))
}

func TestVariablesSecret(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha2.ProviderSpec
		want string // empty: none
	}{
		"none":       {v1alpha2.ProviderSpec{}, ""},
		"secretName": {v1alpha2.ProviderSpec{SecretName: "a"}, "here/a"},
		"configSecret": {
			v1alpha2.ProviderSpec{ConfigSecret: &v1alpha2.SecretReference{Name: "a"}},
			"here/a",
		},
		"configSecret in another namespace": {
			v1alpha2.ProviderSpec{ConfigSecret: &v1alpha2.SecretReference{Name: "a", Namespace: "there"}},
			"there/a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secret, found := c.spec.VariablesSecret("here")
			g.Expect(found).To(Equal(c.want != ""))

			if found {
				g.Expect(secret.String()).To(Equal(c.want))
			}
		})
	}
}
