package cli

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
}

// TestUnreadableCharts: a user may lack the permission to read the operator's ConfigMaps.
func TestUnreadableCharts(t *testing.T) {
	g := NewWithT(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)
	c := &preview{operator: "capstan-system", Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	}).Build()}

	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "capstan-system", Name: "x"}, &corev1.ConfigMap{})).
		To(Satisfy(apierrors.IsNotFound))
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "other", Name: "x"}, &corev1.ConfigMap{})).
		To(Satisfy(apierrors.IsForbidden))
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "capstan-system", Name: "x"}, &corev1.Secret{})).
		To(Satisfy(apierrors.IsForbidden))
}
