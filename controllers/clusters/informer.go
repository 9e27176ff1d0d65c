package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/capstan-project/capstan/controllers/paging"
)

// newInformer returns what creates the informers of a cache that keeps only what strip leaves of an object. All CRDs of
// a large cluster have more than a response may have, and anyone may create objects that look like a provider's.
func newInformer(strip toolscache.TransformFunc) func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return func(
		from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(paging.ListWatcher(from, strip), object, resync, indexers)
	}
}
