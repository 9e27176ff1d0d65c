package safety

import (
	"context"
	"errors"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// pageSize bounds the objects in memory.
const pageSize = 500

// Cluster reads objects from an API server.
type Cluster struct {
	Client dynamic.Interface
}

// All implements Objects. A list that takes longer than the API server remembers goes on with the
// objects as they are then.
func (c Cluster) All(
	ctx context.Context,
	resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		options := metav1.ListOptions{Limit: pageSize}
		for {
			page, err := c.Client.Resource(resource).List(ctx, options)
			if token := continueAnyway(err); token != "" && token != options.Continue {
				options.Continue = token
				continue
			}

			if err != nil {
				yield(nil, err)
				return
			}

			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}

			if options.Continue = page.GetContinue(); options.Continue == "" {
				return
			}
		}
	}
}

// continueAnyway is the token that the API server offers along with the error that the list's own
// has expired.
func continueAnyway(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}

	return status.Status().Continue
}
