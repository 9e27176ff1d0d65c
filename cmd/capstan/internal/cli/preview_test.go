package cli

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestAssumedProviders: providers that are about to be installed are listed with those in the cluster, each in the
// list of its kind.
func TestAssumedProviders(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	newProvider := func(kind v1alpha2.ProviderType, name string) v1alpha2.Provider {
		p := kind.New()
		p.SetName(name)

		return p
	}

	c := &preview{Client: fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(newProvider(v1alpha2.InfrastructureProviderType, "aws")).Build()}
	c.assume(newProvider(v1alpha2.CoreProviderType, "cluster-api"), "v1beta2")
	c.assume(newProvider(v1alpha2.InfrastructureProviderType, "docker"), "v1beta1")

	contracts := func(kind v1alpha2.ProviderType) map[string]*string {
		list := kind.NewList()
		g.Expect(c.List(t.Context(), list)).To(Succeed())

		found := map[string]*string{}
		for _, p := range list.GetItems() {
			found[p.GetName()] = p.GetStatus().Contract
		}

		return found
	}

	g.Expect(contracts(v1alpha2.CoreProviderType)).To(Equal(map[string]*string{"cluster-api": new("v1beta2")}))
	g.Expect(contracts(v1alpha2.InfrastructureProviderType)).To(Equal(
		map[string]*string{"aws": nil, "docker": new("v1beta1")}))
	g.Expect(contracts(v1alpha2.BootstrapProviderType)).To(BeEmpty())

	g.Expect(c.Create(t.Context(), newProvider(v1alpha2.CoreProviderType, "x"))).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "x"}, v1alpha2.CoreProviderType.New())).NotTo(Succeed())
}
