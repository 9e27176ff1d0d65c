package health

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// handler returns the handler for the events of a kind.
func (t *Tracker) handler(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { t.handle(gvk, nil, now, false) },
		UpdateFunc: func(before, now any) { t.handle(gvk, before, now, false) },
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}

			t.handle(gvk, nil, last, true)
		},
	}
}

// handle wakes the provider of an object if the event matters to it.
func (t *Tracker) handle(gvk schema.GroupVersionKind, before, now any, deleted bool) {
	o, ok := now.(client.Object)
	if !ok {
		return
	}

	id := object.Key{GroupVersionKind: gvk, Namespace: o.GetNamespace(), Name: o.GetName()}
	if !t.observe(id, o, deleted) {
		return
	}

	// The change may have removed the marks of the owner.
	owned := o
	if former, ok := before.(client.Object); ok && former.GetAnnotations()[v1alpha2.HelmReleaseNamespaceAnnotation] != "" {
		owned = former
	}

	t.wakeOwner(owned, 0)
}

// wakeOwner wakes the provider that an object belongs to.
func (t *Tracker) wakeOwner(o client.Object, after time.Duration) {
	provider := o.GetLabels()[v1alpha2.ClusterctlProviderLabel]
	namespace := o.GetAnnotations()[v1alpha2.HelmReleaseNamespaceAnnotation]

	t.wake(provider, namespace, after)
}

// observe remembers the state of an object and reports whether it matters to its provider: the
// health has changed, or the object differs from its recorded version.
func (t *Tracker) observe(id object.Key, o client.Object, deleted bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	// An event may arrive after the watch was stopped.
	if t.kinds[id.GroupVersionKind] == nil {
		return false
	}

	recordMatters := t.observeRecorded(id, o, deleted)
	before, known := t.results[id]

	if deleted {
		delete(t.results, id)
		delete(t.unhealthySince, id)

		return known || recordMatters
	}

	now := Compute(o)
	t.results[id] = now

	return recordMatters || !known || !reflect.DeepEqual(before, now)
}
