package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
)

// builtinTypes are types that providers define at run time, by the label of the provider.
var builtinTypes = map[string][]v1alpha2.ManagedType{
	// Azure Service Operator, which is part of the provider, installs the CRDs that a flag selects.
	"infrastructure-azure": {{Group: "*.azure.com"}},
}

// ManagedTypes returns the types of objects that a provider manages in addition to those of its own CRDs.
func ManagedTypes(p v1alpha2.Provider) []v1alpha2.ManagedType {
	if given := p.GetSpec().AdditionalManagedTypes; given != nil {
		return given
	}

	return builtinTypes[v1alpha2.Label(p)]
}

// TypesByLabel returns the types of objects that providers manage in addition to those of their own CRDs, by label: the
// types in the resources, or else the built-in ones.
func TypesByLabel(resources []v1alpha2.Provider) map[string][]v1alpha2.ManagedType {
	all := maps.Clone(builtinTypes)

	for _, p := range resources {
		if types := ManagedTypes(p); len(types) > 0 {
			all[v1alpha2.Label(p)] = types
		} else {
			delete(all, v1alpha2.Label(p))
		}
	}

	return all
}

// ManagedCRDs returns the names of the cluster's CRDs for the types that a provider manages in addition to those of its
// own CRDs, and the types without a CRD.
func ManagedCRDs(
	ctx context.Context, reader client.Reader, p v1alpha2.Provider,
) (names []string, undefined []v1alpha2.ManagedType, err error) {
	types := ManagedTypes(p)
	if len(types) == 0 {
		return nil, nil, nil
	}

	found := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := reader.List(ctx, found); err != nil {
		return nil, nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}

	for _, t := range types {
		before := len(names)

		for i := range found.Items {
			if Manages([]v1alpha2.ManagedType{t}, v1alpha2.Label(p), &found.Items[i]) {
				names = append(names, found.Items[i].Name)
			}
		}

		if len(names) == before {
			undefined = append(undefined, t)
		}
	}

	slices.Sort(names)

	return slices.Compact(names), undefined, nil
}

// Manages reports whether a CRD defines one of the types that the provider of a label manages. The CRD may have that
// label, but must neither belong to another provider nor be applied for this one.
func Manages(types []v1alpha2.ManagedType, label string, crd *apiextensionsv1.CustomResourceDefinition) bool {
	owner, labelled := crd.Labels[v1alpha2.ClusterctlProviderLabel]
	if labelled && owner != label || crds.IsApplied(crd) {
		return false
	}

	return slices.ContainsFunc(types, func(t v1alpha2.ManagedType) bool {
		suffix, isWildcard := strings.CutPrefix(t.Group, "*")
		matches := t.Group == crd.Spec.Group || isWildcard && strings.HasSuffix(crd.Spec.Group, suffix)

		return matches && (t.Kind == "" || t.Kind == crd.Spec.Names.Kind)
	})
}
