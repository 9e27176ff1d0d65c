package clusters

import (
	"context"
	"sync"
)

// places is how many large responses of remote clusters are read and decoded at the same time.
const places = 2

// room has a place for each large response of the remote clusters, at most one for those of a namespace: what all of
// them take together does not depend on how many clusters and resources there are.
type room struct {
	mu   sync.Mutex
	busy map[string]bool // by namespace
	// left is closed when a place becomes free.
	left chan struct{}
}

// enter waits for a place for a namespace.
func (r *room) enter(ctx context.Context, namespace string) error {
	for {
		left := r.tryEnter(namespace)
		if left == nil {
			return nil
		}

		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryEnter takes a place, or returns what is closed when there may be one.
func (r *room) tryEnter(namespace string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.busy == nil {
		r.busy, r.left = map[string]bool{}, make(chan struct{})
	}

	if r.busy[namespace] || len(r.busy) == places {
		return r.left
	}

	r.busy[namespace] = true

	return nil
}

// leave gives the place of a namespace back.
func (r *room) leave(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.busy, namespace)
	close(r.left)
	r.left = make(chan struct{})
}
