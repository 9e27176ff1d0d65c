package health

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

// startTime is how long the objects of a kind may take to be listed before they are read one by one.
const startTime = 5 * time.Second

// watch is a watch of the objects of a kind that bear the label of a provider, in all namespaces or in one.
type watch struct {
	informer toolscache.SharedIndexInformer
	started  time.Time
	stop     context.CancelFunc
	// ended means that the API server does not serve the kind, or refused that the operator may not watch it.
	ended, refused bool
	// blind means that the API server cannot convert the objects, so that changes may have been missed.
	blind bool
}

// runs reports whether there is a watch, and shows whether it shows all objects.
func (w *watch) runs() bool  { return w.informer != nil && !w.ended && !w.refused }
func (w *watch) shows() bool { return w.runs() && w.informer.HasSynced() && !w.blind }

// isDue reports whether a watch has ended that may start again.
func (w *watch) isDue() bool {
	return w.ended && time.Since(w.started) > startTime || w.refused && time.Since(w.started) > pollTime
}

// place is what a watch shows.
type place struct {
	schema.GroupVersionKind
	namespace string // empty for all
}

// placeOf returns the place of an object; false if that is not watched.
func (t *Tracker) placeOf(o object.Key) (place, bool) {
	p := place{GroupVersionKind: o.GroupVersionKind}
	if len(t.namespaces) > 0 {
		p.namespace = o.Namespace
	}

	return p, t.watches != nil && (p.namespace == "" || slices.Contains(t.namespaces, p.namespace))
}

// follow watches the places of a release's objects until the release is forgotten.
func (t *Tracker) follow(owner Owner, objects []object.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.used[owner.key()] == nil {
		t.used[owner.key()] = map[place]bool{}
	}

	for _, o := range objects {
		t.known(o).owner = owner.key()

		p, watched := t.placeOf(o)
		if !watched {
			continue
		}

		t.used[owner.key()][p] = true

		if w := t.watches[p]; w == nil || w.isDue() {
			t.watches[p] = t.start(p)
		}
	}
}

// Forget drops what is known of the objects of a provider's release, and stops watching the kinds that only it had.
func (t *Tracker) Forget(provider, namespace string) {
	owner := Owner{Provider: provider, Namespace: namespace}.key()

	t.mu.Lock()
	defer t.mu.Unlock()

	maps.DeleteFunc(t.objects, func(_ object.Key, o *known) bool { return o.owner == owner })

	before := t.used[owner]
	delete(t.used, owner)

	for p := range before {
		isUsed := func(others map[place]bool) bool { return others[p] }
		if !slices.ContainsFunc(slices.Collect(maps.Values(t.used)), isUsed) {
			t.watches[p].stop()
			delete(t.watches, p)
		}
	}
}

// start starts a watch.
func (t *Tracker) start(p place) *watch {
	ctx, stop := context.WithCancel(t.ctx)
	w := &watch{started: time.Now(), stop: stop}
	w.informer = toolscache.NewSharedIndexInformer(t.listWatch(p, w), &seen{}, 0, toolscache.Indexers{})

	// Neither fails before the informer runs.
	_, _ = w.informer.AddEventHandler(t.handler(p.GroupVersionKind))
	_ = w.informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, r *toolscache.Reflector, err error) {
			refused := apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
			if !refused && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				toolscache.DefaultWatchErrorHandler(ctx, r, err)
				return
			}

			t.mu.Lock()
			defer t.mu.Unlock()

			w.ended, w.refused = !refused, refused
			w.stop()
		})

	go w.informer.RunWithContext(ctx)

	return w
}

// watchOf returns the watch of an object as it is now; without an informer if there is none. t.mu must be held.
func (t *Tracker) watchOf(o object.Key) watch {
	p, _ := t.placeOf(o)
	if w := t.watches[p]; w != nil {
		return *w
	}

	return watch{}
}

// get returns an object as the watch shows it, nil if it does not exist, and the version of what is shown.
func (w *watch) get(o object.Key) (*seen, string) {
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}.String()
	if o.Namespace == "" {
		key = o.Name
	}

	if found, exists, _ := w.informer.GetStore().GetByKey(key); exists {
		return found.(*seen), found.(*seen).ResourceVersion
	}

	return nil, w.informer.LastSyncResourceVersion()
}

// note notes whether the objects of a place could be converted, and wakes their providers when that changes. The API
// server asks for patience while it cannot convert objects, and informers are patient in silence.
func (t *Tracker) note(p place, w *watch, err error) {
	var woken []Owner

	t.mu.Lock()

	if blind := object.IsConversion(err); blind != w.blind && (blind || err == nil) {
		woken, w.blind = t.usersOf(p), blind
	}

	t.mu.Unlock()

	for _, owner := range woken {
		t.wake(owner.Provider, owner.Namespace, 0)
	}
}

// usersOf returns the owners of objects of a place. t.mu must be held.
func (t *Tracker) usersOf(p place) []Owner {
	var users []Owner

	for key, places := range t.used {
		if places[p] {
			namespace, label, _ := strings.Cut(key, "/")
			users = append(users, Owner{Provider: label, Namespace: namespace})
		}
	}

	return users
}

// listWatch lists and watches what is kept of the objects of a place: a page is reduced to that before the next one is
// requested.
func (t *Tracker) listWatch(p place, w *watch) toolscache.ListerWatcher {
	keep := func(o client.Object) *seen {
		return seenOf(object.Key{GroupVersionKind: p.GroupVersionKind, Namespace: o.GetNamespace(), Name: o.GetName()}, o)
	}
	list := func() client.ObjectList {
		gvk := p.GroupVersion().WithKind(p.Kind + "List")
		if isReadWhole(p.GroupKind()) {
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(gvk)

			return all
		}

		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(gvk)

		return all
	}
	request := func(options metav1.ListOptions) *client.ListOptions {
		options.LabelSelector = v1alpha2.ClusterctlProviderLabel

		return &client.ListOptions{
			Namespace: p.namespace, Limit: options.Limit, Continue: options.Continue, Raw: &options,
		}
	}

	return paging.ListWatcher(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			page := list()

			err := t.client.List(ctx, page, request(options))
			if t.note(p, w, err); err != nil {
				return nil, err
			}

			kept := &seenList{ListMeta: metav1.ListMeta{
				ResourceVersion: page.GetResourceVersion(), Continue: page.GetContinue(),
			}}
			err = meta.EachListItem(page, func(o runtime.Object) error {
				kept.Items = append(kept.Items, keep(o.(client.Object)))
				return nil
			})

			return kept, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (kwatch.Interface, error) {
			events, err := t.client.Watch(ctx, list(), request(options))
			if t.note(p, w, err); err != nil {
				return nil, err
			}

			return kwatch.Filter(events, func(e kwatch.Event) (kwatch.Event, bool) {
				if o, ok := e.Object.(client.Object); ok {
					e.Object = keep(o)
				}

				return e, true
			}), nil
		},
	}, func(o any) (any, error) { return o, nil })
}

// event is what a watch has shown of an object.
type event struct {
	before, now *seen // before is nil if the object was not known
	// initial means that the object existed when the watch began.
	initial, deleted bool
}

// changes reports whether the health or the content of the object may have changed.
func (e event) changes() bool {
	return e.deleted || e.before == nil || e.now.snapshot.Content == "" ||
		e.before.snapshot.Content != e.now.snapshot.Content || !reflect.DeepEqual(e.before.result, e.now.result)
}

// handler returns the handler for the events of a kind.
func (t *Tracker) handler(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(now any, initial bool) {
			t.handle(gvk, event{now: now.(*seen), initial: initial})
		},
		UpdateFunc: func(before, now any) {
			t.handle(gvk, event{before: before.(*seen), now: now.(*seen)})
		},
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}

			if o, ok := last.(*seen); ok {
				t.handle(gvk, event{now: o, deleted: true})
			}
		},
	}
}

// handle wakes the provider of an object if the event matters to it.
func (t *Tracker) handle(gvk schema.GroupVersionKind, e event) {
	if e.before != nil && e.before.ResourceVersion == e.now.ResourceVersion {
		return // the objects were listed again
	}

	o := e.now
	id := object.Key{GroupVersionKind: gvk, Namespace: o.Namespace, Name: o.Name}

	stranger, matters := t.matters(id, e)
	if !matters {
		return
	}

	// The change may have removed the marks of the owner.
	if e.before != nil && e.before.Annotations[v1alpha2.HelmReleaseNamespaceAnnotation] != "" {
		o = e.before
	}

	label := o.Labels[v1alpha2.ClusterctlProviderLabel]
	namespace := o.Annotations[v1alpha2.HelmReleaseNamespaceAnnotation]

	if !stranger {
		t.wake(label, namespace, 0)
	} else if delay, due := t.introduce(label, namespace, time.Now()); !due {
		t.wake(label, namespace, delay)
	}
}

// strangerTime is how often a provider is woken for objects that it has not looked at.
const strangerTime = 10 * time.Second

// introduce returns when a provider has to be woken for an object that it has not looked at, or that this is due
// already. It may be one that the release has dropped, but anybody can give an object the marks of a release, and
// change it all the time.
func (t *Tracker) introduce(label, namespace string, now time.Time) (delay time.Duration, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	maps.DeleteFunc(t.strangers, func(_ string, at time.Time) bool { return now.Sub(at) >= strangerTime })

	name := Owner{Provider: label, Namespace: namespace}.key()
	last, known := t.strangers[name]

	if last.After(now) {
		return 0, true
	}

	if known {
		delay = last.Add(strangerTime).Sub(now)
	}

	t.strangers[name] = now.Add(delay)

	return delay, false
}
