package callers

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// askTimeout limits the time of a question that several callers may wait for.
const askTimeout = 10 * time.Second

// memo remembers answers for a short time, and a limited number of them. Several callers who ask the same at the same
// time get one answer. It is safe for concurrent use.
type memo[V any] struct {
	ttl     time.Duration
	known   *lru.Cache
	flights singleflight.Group
}

func newMemo[V any](size int, ttl time.Duration) *memo[V] {
	return &memo[V]{ttl: ttl, known: lru.New(size)}
}

// get returns the answer to the question with a key. Errors are not remembered.
func (m *memo[V]) get(ctx context.Context, key string, ask func(context.Context) (V, error)) (V, error) {
	if known, ok := m.known.Get(key); ok {
		return known.(V), nil
	}

	// The others still want the answer if this caller leaves.
	answer := m.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()

		value, err := ask(ctx)
		if err == nil {
			m.known.Add(key, value)
			time.AfterFunc(m.ttl, func() { m.known.Remove(key) })
		}

		return value, err
	})

	var none V

	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case result := <-answer:
		if result.Err != nil {
			return none, result.Err
		}

		return result.Val.(V), nil
	}
}
