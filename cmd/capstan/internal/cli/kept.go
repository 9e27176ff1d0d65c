package cli

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// PrintKept prints how many CRDs of providers stay, as far as the user may list them, and how to delete them. The
// values of their label are selected by an operator.
func (c *Cluster) PrintKept(ctx context.Context, o *Options, operator selection.Operator, values ...string) {
	selected, err := labels.NewRequirement(v1alpha2.ClusterctlProviderLabel, operator, values)
	if err != nil {
		return
	}

	kept, err := c.ListCRDs(ctx, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*selected)})
	if err == nil && len(kept) > 0 {
		o.Printf("%s kept; to delete them with all objects of their kinds: kubectl delete crd -l '%s'",
			object.Count(len(kept), "CRD"), selected)
	}
}

// ListCRDs lists the CRDs that have labels.
func (c *Cluster) ListCRDs(ctx context.Context, labels client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))

	if err := c.Client.List(ctx, list, labels); err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}

	return list.Items, nil
}
