package clusters

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/capstan-project/capstan/controllers/crds"
)

// definitionsPage is how many CRDs are listed at a time. All CRDs of a large cluster have more than a
// response may have, and much more in memory.
const definitionsPage = 25

// newDefinitionsInformer returns an informer of CRDs. Where the API server cannot send the present ones as
// events of a watch, it lists them in pages and removes the schemas of each page.
func newDefinitionsInformer(
	source toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	from := toolscache.ToListerWatcherWithContext(source)

	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// API servers send everything at once to those that ask for any version, such as "0".
			options.ResourceVersion = ""
			options.ResourceVersionMatch = ""
			options.Limit = definitionsPage

			list, err := from.ListWithContext(ctx, options)
			if err != nil {
				return nil, err
			}

			return list, stripList(list)
		},
		WatchFuncWithContext: from.WatchWithContext,
	}, object, resync, indexers)
}

// stripList removes the schemas of a list of CRDs.
func stripList(list runtime.Object) error {
	definitions, ok := list.(*apiextensionsv1.CustomResourceDefinitionList)
	if !ok {
		return nil
	}

	for i := range definitions.Items {
		if _, err := crds.StripSchemas(&definitions.Items[i]); err != nil {
			return err
		}
	}

	return nil
}
