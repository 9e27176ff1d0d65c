package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// TestAffectedProviders: a provider is reconciled once all its CRDs are served, and not for each one.
func TestAffectedProviders(t *testing.T) {
	type crd = apiextensionsv1.CustomResourceDefinition

	named := func(name string, conditions ...apiextensionsv1.CustomResourceDefinitionCondition) *crd {
		return &crd{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     apiextensionsv1.CustomResourceDefinitionStatus{Conditions: conditions},
		}
	}
	served := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
	}
	invalid := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "InvalidCABundle",
	}
	taken := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse,
	}
	changed := named("a", served)
	changed.Generation = 2

	for name, test := range map[string]struct {
		before, now *crd
		other       *crd // in the same chart
		affected    bool
	}{
		"created":                             {nil, named("a"), named("b", served), false},
		"created and served":                  {nil, named("a", served), named("b", served), true},
		"unchanged":                           {named("a"), named("a"), named("b", served), false},
		"served as the last one":              {named("a"), named("a", served), named("b", served), true},
		"served before another one":           {named("a"), named("a", served), named("b"), false},
		"served before another one exists":    {named("a"), named("a", served), nil, true},
		"served, and another one cannot be":   {named("a"), named("a", served), named("b", invalid), true},
		"served, and another one has no name": {named("a"), named("a", served), named("b", taken), true},
		"served no longer":                    {named("a", served), named("a"), named("b"), true},
		"changed before another one":          {named("a", served), changed, named("b"), true},
		"deleted before another one":          {named("a", served), nil, named("b"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(AddToScheme(scheme)).To(Succeed())

			cache := fake.NewClientBuilder().WithScheme(scheme)

			for _, live := range []*crd{test.now, test.other} {
				if live != nil {
					cache.WithObjects(live.DeepCopy())
				}
			}

			a := NewApplier(Clients{Client: cache.Build()})
			a.rememberCRDs("core", []chart.File{{Name: "crds/a.yaml"}, {Name: "crds/b.yaml"}})

			affected := a.AffectedProviders(t.Context(), test.before, test.now)
			if test.affected {
				g.Expect(affected).To(Equal([]string{"core"}))
			} else {
				g.Expect(affected).To(BeEmpty())
			}
		})
	}
}
