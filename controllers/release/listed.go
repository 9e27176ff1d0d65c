package release

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/paging"
)

const (
	// listedLifetime is how long objects are given out.
	listedLifetime = time.Minute
	// maxListed limits how many bytes of objects are in memory, and listedPage how many objects a request lists.
	maxListed, listedPage = 16 << 20, 250
)

// listFunc lists the objects of a kind.
type listFunc = paging.ListFunc[*unstructured.UnstructuredList]

// listedObjects are the objects of many releases, as they were listed when the first of their kind was asked for. They
// are given out once, for a minute: what is asked for later has changed since. An operator that starts compares the
// objects of all releases with the cluster, which would otherwise take a request for each: the restart with a hundred
// small providers would take 731 requests instead of 331.
//
// It is safe for concurrent use.
type listedObjects struct {
	selector string

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*listedKind
	size  int
	over  bool
}

// listedKind are the objects of a kind, as JSON, once read is closed.
type listedKind struct {
	read    chan struct{}
	objects map[types.NamespacedName][]byte
}

// newListedObjects returns objects that a label selector matches.
func newListedObjects(selector string) *listedObjects {
	o := &listedObjects{selector: selector, kinds: map[schema.GroupVersionKind]*listedKind{}}

	time.AfterFunc(listedLifetime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()

		o.over, o.kinds, o.size = true, nil, 0
	})

	return o
}

// take returns an object without its managed fields; nil if it is not known: it may have been given out before, not
// exist, or not have been read, for want of permission or memory.
func (o *listedObjects) take(
	ctx context.Context, of schema.GroupVersionKind, name types.NamespacedName, list listFunc,
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
func (o *listedObjects) find(ctx context.Context, of schema.GroupVersionKind, list listFunc) *listedKind {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.over || o.kinds[of] != nil {
		return o.kinds[of]
	}

	begun := &listedKind{read: make(chan struct{}), objects: map[types.NamespacedName][]byte{}}
	o.kinds[of] = begun

	go func() {
		defer close(begun.read)

		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listedLifetime)
		defer cancel()

		o.read(ctx, begun, list)
	}()

	return begun
}

// read reads the objects of a kind, up to the first problem.
func (o *listedObjects) read(ctx context.Context, into *listedKind, list listFunc) {
	options := metav1.ListOptions{LabelSelector: o.selector, Limit: listedPage}

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
func (o *listedObjects) add(into *listedKind, item *unstructured.Unstructured) bool {
	item.SetManagedFields(nil)

	content, err := json.Marshal(item.Object)
	if err != nil {
		return true
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	if o.over || o.size+len(content) > maxListed {
		return false
	}

	into.objects[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = content
	o.size += len(content)

	return true
}
