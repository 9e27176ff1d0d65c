// Package namespaces watches the metadata of ConfigMaps and Secrets in the namespaces of provider resources, and in no
// others: objects of people who have nothing to do with providers must not cost the operator memory.
package namespaces

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// The resources that are watched.
var (
	ConfigMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	Secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
)

// Watches are the watches of namespaces. They are safe for concurrent use.
type Watches struct {
	client metadata.Interface
	only   []string

	mu      sync.Mutex
	started bool
	// users are the namespaces that each user needs.
	users   map[string][]string
	watched map[string]*namespace
	sources map[schema.GroupVersionResource][]toolscache.ResourceEventHandler
}

// firstList is how long to wait for the first list of a namespace, which an API server with hundreds of them may give
// late. One that is refused is tried again in the background.
const firstList = 5 * time.Second

// namespace is a namespace that is watched for a number of users.
type namespace struct {
	users     int
	informers map[schema.GroupVersionResource]toolscache.SharedIndexInformer
	begun     time.Time
	stop      chan struct{}
}

// watched reports whether the first lists of all resources are known.
func (n *namespace) watched() bool {
	for _, informer := range n.informers {
		if !informer.HasSynced() {
			return false
		}
	}

	return true
}

// New returns watches that begin with Start, of certain namespaces at most; empty for all.
func New(client metadata.Interface, only []string) *Watches {
	return &Watches{
		client:  client,
		only:    only,
		users:   map[string][]string{},
		watched: map[string]*namespace{},
		sources: map[schema.GroupVersionResource][]toolscache.ResourceEventHandler{},
	}
}

// Start watches until ctx ends.
func (w *Watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.started = true

	for _, n := range w.watched {
		n.start()
	}
	w.mu.Unlock()

	<-ctx.Done()

	w.mu.Lock()
	defer w.mu.Unlock()

	w.started = false

	for _, n := range w.watched {
		close(n.stop)
	}

	clear(w.watched)
	clear(w.users)

	return nil
}

// Follow watches namespaces for a user. It replaces the namespaces of an earlier call for the same user.
func (w *Watches) Follow(user string, needed ...string) {
	needed = slices.Compact(slices.Sorted(slices.Values(needed)))
	needed = slices.DeleteFunc(needed, func(name string) bool { return !w.mayWatch(name) })

	w.mu.Lock()
	defer w.mu.Unlock()

	before := w.users[user]
	w.users[user] = needed

	if len(needed) == 0 {
		delete(w.users, user)
	}

	for _, name := range needed {
		w.use(name)
	}

	for _, name := range before {
		w.release(name)
	}
}

func (w *Watches) mayWatch(name string) bool {
	return len(w.only) == 0 || slices.Contains(w.only, name)
}

// Unwatched returns those of some namespaces that may be watched, and are not yet. Their first list wakes no provider,
// so what was read before must be read again.
func (w *Watches) Unwatched(names ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		n := w.watched[name]
		return !w.mayWatch(name) || n != nil && n.watched()
	})
}

// Await waits until a namespace is watched that some user follows, or is about to, so that what is there need not be
// read by requests. It returns false if that takes too long, and at once if it has taken too long before.
func (w *Watches) Await(ctx context.Context, name string) bool {
	const interval = 5 * time.Millisecond

	err := wait.PollUntilContextTimeout(ctx, interval, firstList, true, func(context.Context) (bool, error) {
		if len(w.Unwatched(name)) == 0 {
			return true, nil
		}

		w.mu.Lock()
		defer w.mu.Unlock()

		n := w.watched[name]
		if n != nil && !n.begun.IsZero() && time.Since(n.begun) > firstList {
			return false, context.DeadlineExceeded
		}

		return false, nil
	})

	return err == nil
}

// use watches a namespace for one more user. w.mu must be held.
func (w *Watches) use(name string) {
	n := w.watched[name]
	if n == nil {
		n = w.newNamespace(name)
		w.watched[name] = n

		if w.started {
			n.start()
		}
	}

	n.users++
}

// release watches a namespace for one user less. w.mu must be held.
func (w *Watches) release(name string) {
	n := w.watched[name]
	if n == nil {
		return
	}

	n.users--

	if n.users == 0 {
		close(n.stop)
		delete(w.watched, name)
	}
}

func (n *namespace) start() {
	n.begun = time.Now()

	for _, informer := range n.informers {
		go informer.Run(n.stop)
	}
}

func (w *Watches) newNamespace(name string) *namespace {
	n := &namespace{
		informers: map[schema.GroupVersionResource]toolscache.SharedIndexInformer{},
		stop:      make(chan struct{}),
	}

	for _, resource := range []schema.GroupVersionResource{ConfigMaps, Secrets} {
		n.informers[resource] = w.newInformer(resource, name)
	}

	return n
}

// newInformer returns an informer of a resource in a namespace.
func (w *Watches) newInformer(resource schema.GroupVersionResource, name string) toolscache.SharedIndexInformer {
	objects := w.client.Resource(resource).Namespace(name)
	all := toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}, w.client)

	informer := toolscache.NewSharedIndexInformer(
		paging.ListWatcher(all, strip), &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{releaseIndex: releaseOf})

	// Neither fails before the informer has started.
	_ = informer.SetTransform(strip)
	_, _ = informer.AddEventHandler(w.handlerOf(resource))

	return informer
}

// releaseIndex finds Helm's records by the name of their release.
const releaseIndex = "release"

func releaseOf(object any) ([]string, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || !storage.IsRecord(m.Labels) {
		return nil, nil
	}

	return []string{storage.ReleaseName(m.Labels)}, nil
}

// objects returns what is known of a resource in a namespace; nil until that is watched.
func (w *Watches) objects(resource schema.GroupVersionResource, name string) toolscache.Indexer {
	w.mu.Lock()
	n := w.watched[name]
	w.mu.Unlock()

	if n == nil || !n.informers[resource].HasSynced() {
		return nil
	}

	return n.informers[resource].GetIndexer()
}

// Records returns the metadata of Helm's records of a release, with managed fields that have the time of the last
// write. They are not known until the namespace is watched, and must not be changed.
func (w *Watches) Records(release types.NamespacedName) (records []metav1.PartialObjectMetadata, watched bool) {
	objects := w.objects(Secrets, release.Namespace)
	if objects == nil {
		return nil, false
	}

	found, err := objects.ByIndex(releaseIndex, release.Name)

	for _, object := range found {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok {
			records = append(records, *m)
		}
	}

	return records, err == nil
}

// Get returns the metadata of an object, nil if it does not exist. That is not known until its namespace is watched. It
// must not be changed.
func (w *Watches) Get(
	resource schema.GroupVersionResource, name types.NamespacedName,
) (found *metav1.PartialObjectMetadata, watched bool) {
	objects := w.objects(resource, name.Namespace)
	if objects == nil {
		return nil, false
	}

	object, _, err := objects.GetByKey(name.String())
	found, _ = object.(*metav1.PartialObjectMetadata)

	return found, err == nil
}

// Find returns the metadata of the ConfigMaps or Secrets of a namespace that match, which must not be changed. They are
// not known until the namespace is watched.
func (w *Watches) Find(
	kind, namespace string, matches func(*metav1.PartialObjectMetadata) bool,
) (found []*metav1.PartialObjectMetadata, watched bool) {
	resource := ConfigMaps
	if kind == "Secret" {
		resource = Secrets
	}

	objects := w.objects(resource, namespace)
	if objects == nil {
		return nil, false
	}

	for _, object := range objects.List() {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok && matches(m) {
			found = append(found, m)
		}
	}

	return found, true
}

// Source hands the events of a resource to a handler once a controller runs, except those of the first list of a
// namespace: a controller begins with all its resources, and each reconcile awaits the namespace of its resource.
func (w *Watches) Source(resource schema.GroupVersionResource, h handler.EventHandler) source.Source {
	return source.Func(func(
		ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
	) error {
		w.mu.Lock()
		defer w.mu.Unlock()

		w.sources[resource] = append(w.sources[resource], toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(now any) { h.Create(ctx, event.CreateEvent{Object: now.(client.Object)}, queue) },
			UpdateFunc: func(before, now any) {
				h.Update(ctx, event.UpdateEvent{ObjectOld: before.(client.Object), ObjectNew: now.(client.Object)}, queue)
			},
			DeleteFunc: func(last any) { h.Delete(ctx, event.DeleteEvent{Object: last.(client.Object)}, queue) },
		})

		return nil
	})
}

// handlerOf hands the events of a resource to all sources: a handler for each would cost goroutines and a buffer.
func (w *Watches) handlerOf(resource schema.GroupVersionResource) toolscache.ResourceEventHandler {
	each := func(hand func(toolscache.ResourceEventHandler)) {
		w.mu.Lock()
		sources := slices.Clone(w.sources[resource])
		w.mu.Unlock()

		for _, s := range sources {
			hand(s)
		}
	}

	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(now any, first bool) {
			if !first {
				each(func(s toolscache.ResourceEventHandler) { s.OnAdd(now, first) })
			}
		},
		UpdateFunc: func(before, now any) {
			each(func(s toolscache.ResourceEventHandler) { s.OnUpdate(before, now) })
		},
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}

			each(func(s toolscache.ResourceEventHandler) { s.OnDelete(last) })
		},
	}
}

func strip(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		storage.Strip(m)
	}

	return object, nil
}
