package fresh

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/controllers/paging"
)

const (
	// sharedAge is how long a list is shared.
	sharedAge = 10 * time.Second
	// refusedAge is how long a list is not requested again that is forbidden or too long.
	refusedAge = 10 * time.Minute
	// sharedTimeout bounds all requests of a list.
	sharedTimeout = 30 * time.Second
	// sharedPage and sharedItems bound a page of a list and the whole list.
	sharedPage, sharedItems = 500, 2000
)

// ErrTooMany means that there are too many objects to list them all.
var ErrTooMany = errors.New("there are too many objects to list them all")

// Shared lists the metadata of all objects of a resource once for many readers. Each of them names a time after which
// the list has to have begun: what existed then is in it. It is safe for concurrent use.
//
// If each provider asked for each of its objects instead, an installation of five would take a sixth more requests, and
// one of a hundred small providers a fifth more.
type Shared[T any] struct {
	metadata metadata.Interface
	selector string
	pick     func(*metav1.PartialObjectMetadata) T

	mu    sync.Mutex
	lists map[schema.GroupVersionResource]*sharedList[T]
}

// sharedList is a list that is being read, until done is closed.
type sharedList[T any] struct {
	began time.Time
	done  chan struct{}
	items []T
	err   error
}

// NewShared returns lists of the objects that a label selector matches, read with the permissions of the client. pick
// returns what is kept of an object.
func NewShared[T any](
	client metadata.Interface, selector string, pick func(*metav1.PartialObjectMetadata) T,
) *Shared[T] {
	return &Shared[T]{
		metadata: client, selector: selector, pick: pick, lists: map[schema.GroupVersionResource]*sharedList[T]{},
	}
}

// List returns what is kept of the objects of a resource, in all namespaces, by a list that began after a time and at
// most ten seconds ago. It must not be changed. An object may have been created or deleted since. The error is
// ErrTooMany, or one of the API server.
func (s *Shared[T]) List(ctx context.Context, resource schema.GroupVersionResource, since time.Time) ([]T, error) {
	list := s.find(ctx, resource, since)

	select {
	case <-list.done:
		return list.items, list.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns the list of a resource that may be used, and begins it if there is none.
func (s *Shared[T]) find(ctx context.Context, resource schema.GroupVersionResource, since time.Time) *sharedList[T] {
	s.mu.Lock()
	defer s.mu.Unlock()

	if known := s.lists[resource]; known != nil && (known.isRefused() || known.began.After(since)) {
		return known
	}

	begun := &sharedList[T]{began: time.Now(), done: make(chan struct{})}
	s.lists[resource] = begun

	// The reader who happens to be the first may stop waiting before the others do.
	go s.read(context.WithoutCancel(ctx), resource, begun)

	return begun
}

// isRefused reports whether the list is known to be forbidden or too long.
func (l *sharedList[T]) isRefused() bool {
	select {
	case <-l.done:
		return errors.Is(l.err, ErrTooMany) || apierrors.IsForbidden(l.err) || apierrors.IsNotFound(l.err)
	default:
		return false
	}
}

// read reads a list, and forgets it once it is too old.
func (s *Shared[T]) read(ctx context.Context, resource schema.GroupVersionResource, list *sharedList[T]) {
	ctx, cancel := context.WithTimeout(ctx, sharedTimeout)
	defer cancel()

	list.items, list.err = s.readPages(ctx, resource)
	close(list.done)

	age := sharedAge

	switch {
	case list.isRefused():
		age = refusedAge
	case list.err != nil:
		age = 0
	}

	time.AfterFunc(age-time.Since(list.began), func() {
		s.mu.Lock()
		defer s.mu.Unlock()

		if s.lists[resource] == list {
			delete(s.lists, resource)
		}
	})
}

func (s *Shared[T]) readPages(ctx context.Context, resource schema.GroupVersionResource) ([]T, error) {
	var items []T

	options := metav1.ListOptions{LabelSelector: s.selector, Limit: sharedPage}

	for page, err := range paging.Pages(ctx, options, s.metadata.Resource(resource).List) {
		if err != nil {
			return nil, err
		}

		for i := range page.Items {
			items = append(items, s.pick(&page.Items[i]))
		}

		if len(items) > sharedItems || len(items) == sharedItems && page.Continue != "" {
			return nil, ErrTooMany
		}
	}

	return items, nil
}
