package ui

import (
	"maps"
	"slices"
	"sync"
)

// Feed tells pages which providers have changed. It is safe for concurrent use; its zero value is ready to use.
type Feed struct {
	mu          sync.Mutex
	subscribers map[*subscriber]bool
	problem     string
}

// subscriber is a page that waits for updates.
type subscriber struct {
	wake    chan struct{} // has one element while there is something to send
	changed map[string]bool
}

// Changed reports that the provider with an ID of page.ID has changed. It never blocks.
func (f *Feed) Changed(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	for s := range f.subscribers {
		s.changed[id] = true
		s.wakeUp()
	}
}

// SetStale reports why the facts may be outdated, or with an empty text that they are not any more.
func (f *Feed) SetStale(problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.problem == problem {
		return
	}

	f.problem = problem

	for s := range f.subscribers {
		s.wakeUp()
	}
}

func (f *Feed) stale() string {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.problem
}

// Watched reports whether any page waits for updates.
func (f *Feed) Watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	return len(f.subscribers) > 0
}

func (f *Feed) subscribe() *subscriber {
	s := &subscriber{wake: make(chan struct{}, 1), changed: map[string]bool{}}

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.subscribers == nil {
		f.subscribers = map[*subscriber]bool{}
	}

	f.subscribers[s] = true

	return s
}

func (f *Feed) unsubscribe(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()

	delete(f.subscribers, s)
}

// take returns the IDs of what has changed since the last call.
func (f *Feed) take(s *subscriber) []string {
	f.mu.Lock()
	defer f.mu.Unlock()

	changed := slices.Sorted(maps.Keys(s.changed))
	clear(s.changed)

	return changed
}

// wakeUp makes the page look for something to send.
func (s *subscriber) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}
