// Package bulk reads the objects of many releases by a few lists. An operator that starts compares the objects of all
// releases with the cluster, which would otherwise take a request for each.
package bulk

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/crds/paging"
)

const (
	// lifetime is how long objects are given out.
	lifetime = time.Minute
	// maxSize limits how many bytes of objects are in memory, and page how many objects a request lists.
	maxSize, page = 16 << 20, 250
)

// List lists the objects of a kind.
type List = paging.ListFunc[*unstructured.UnstructuredList]

// Objects are the objects of releases, as they were listed when the first of their kind was asked for. They are given
// out once, for a minute: what is asked for later has changed since. It is safe for concurrent use.
type Objects struct {
	selector string

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kind
	size  int
	over  bool
}

// kind are the objects of a kind, as JSON, once read is closed.
type kind struct {
	read    chan struct{}
	objects map[types.NamespacedName][]byte
}

// New returns objects that a label selector matches.
func New(selector string) *Objects {
	o := &Objects{selector: selector, kinds: map[schema.GroupVersionKind]*kind{}}

	time.AfterFunc(lifetime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()

		o.over, o.kinds, o.size = true, nil, 0
	})

	return o
}

// Take returns an object without its managed fields; nil if it is not known: it may have been given out before, not
// exist, or not have been read, for want of permission or memory.
func (o *Objects) Take(
	ctx context.Context, of schema.GroupVersionKind, name types.NamespacedName, list List,
) *unstructured.Unstructured {
	found := o.find(ctx, of, list)
	if found == nil {
		return nil
	}

	select {
	case <-found.read:
	case <-ctx.Done():
		return nil
	}

	o.mu.Lock()
	content := found.objects[name]
	delete(found.objects, name)

	o.size -= len(content)
	o.mu.Unlock()

	if content == nil {
		return nil
	}

	object := &unstructured.Unstructured{}
	if object.UnmarshalJSON(content) != nil {
		return nil
	}

	return object
}

// find returns the objects of a kind, and begins to read them if they were not asked for before; nil if the time is
// over.
func (o *Objects) find(ctx context.Context, of schema.GroupVersionKind, list List) *kind {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.over || o.kinds[of] != nil {
		return o.kinds[of]
	}

	begun := &kind{read: make(chan struct{}), objects: map[types.NamespacedName][]byte{}}
	o.kinds[of] = begun

	go func() {
		defer close(begun.read)

		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lifetime)
		defer cancel()

		o.read(ctx, begun, list)
	}()

	return begun
}

// read reads the objects of a kind, up to the first problem.
func (o *Objects) read(ctx context.Context, into *kind, list List) {
	options := metav1.ListOptions{LabelSelector: o.selector, Limit: page}

	for page, err := range paging.Pages(ctx, options, list) {
		if err != nil {
			return
		}

		for i := range page.Items {
			if !o.add(into, &page.Items[i]) {
				return
			}
		}
	}
}

// add keeps an object, and reports whether there is space for more.
func (o *Objects) add(into *kind, item *unstructured.Unstructured) bool {
	item.SetManagedFields(nil)

	content, err := json.Marshal(item.Object)
	if err != nil {
		return true
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	if o.over || o.size+len(content) > maxSize {
		return false
	}

	into.objects[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = content
	o.size += len(content)

	return true
}
