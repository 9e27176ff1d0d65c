package watch

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Wakers add resources to the controllers' queues when something other than an event of the
// controllers' own watches concerns them: the health of an object, a deadline, a remote cluster.
type Wakers struct {
	mu     sync.Mutex
	queues map[v1alpha2.ProviderType]workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Source registers the queue of a kind's controller once the controller runs.
func (w *Wakers) Source(t v1alpha2.ProviderType) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()

		if w.queues == nil {
			w.queues = map[v1alpha2.ProviderType]workqueue.TypedRateLimitingInterface[reconcile.Request]{}
		}

		w.queues[t] = queue

		return nil
	})
}

// Wake enqueues the resource of a provider's label in a namespace after a delay. It does nothing
// for labels of kinds without a controller.
func (w *Wakers) Wake(label, namespace string, after time.Duration) {
	t, name := v1alpha2.ParseLabel(label)

	w.mu.Lock()
	queue := w.queues[t]
	w.mu.Unlock()

	if queue != nil && namespace != "" {
		key := client.ObjectKey{Namespace: namespace, Name: name}
		queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
}
