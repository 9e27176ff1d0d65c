package clusters

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/patches"
)

// patchAsInstalled returns a CRD as the operator would apply it: with the patches of the resource that the
// live one was applied for.
func patchAsInstalled(
	ctx context.Context, reader client.Reader, live, desired *apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	provider, err := findOwner(ctx, reader, live)
	if err != nil || provider == nil {
		return desired, err
	}

	text, err := yaml.Marshal(desired)
	if err != nil {
		return nil, err
	}

	patched, err := patches.PatchCRDs([]chart.File{{Data: text}}, provider.GetSpec())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v1alpha2.FullName(provider), err)
	}

	result := &apiextensionsv1.CustomResourceDefinition{}

	return result, yaml.Unmarshal(patched.Files[0].Data, result)
}

// findOwner returns the resource that a live CRD was applied for; nil if there is none in the cluster.
func findOwner(
	ctx context.Context, reader client.Reader, live *apiextensionsv1.CustomResourceDefinition,
) (v1alpha2.Provider, error) {
	label := live.Labels[v1alpha2.ClusterctlProviderLabel]
	if label == "" {
		return nil, nil
	}

	t, _ := v1alpha2.ParseLabel(label)
	list := t.NewList()

	err := reader.List(ctx, list)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list %s resources: %w", t, err)
	}

	for _, p := range list.GetItems() {
		if crds.IsAppliedFor(live, p.GetUID()) {
			return p, nil
		}
	}

	return nil, nil
}
