package trial

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/controllers/paging"
)

// pageSize limits the objects in memory.
const pageSize = 20

// ClusterObjects reads objects from an API server.
type ClusterObjects struct {
	Client dynamic.Interface
}

// All implements Objects.
func (c ClusterObjects) All(
	ctx context.Context,
	resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	list := c.Client.Resource(resource).List

	return func(yield func(*unstructured.Unstructured, error) bool) {
		for page, err := range paging.Pages(ctx, metav1.ListOptions{Limit: pageSize}, list) {
			if err != nil {
				yield(nil, err)
				return
			}

			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
		}
	}
}
