package fresh

import (
	"maps"
	"sync"
)

// Lists reports whether a cache shows a list of objects at least as this process has seen it. Lists are identified by
// keys; of each it knows the versions of its objects, by name. The zero value knows nothing. It is safe for concurrent
// use.
//
// If each observation of a release listed its Secrets instead, an installation of five providers would take a fifth
// more requests, and an upgrade of all five a tenth more.
type Lists[K comparable] struct {
	mu sync.Mutex
	// known has nil for lists that were forgotten.
	known map[K]map[string]string
}

// Set notes the versions of all objects of a list, as they were read. A newer version of one of them that is known
// already, because the object was written since, stays.
func (l *Lists[K]) Set(key K, versions map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.known == nil {
		l.known = map[K]map[string]string{}
	}

	before := l.known[key]
	l.known[key] = maps.Clone(versions)

	for name, version := range versions {
		if known, ok := before[name]; ok && isAtLeast(known, version) {
			l.known[key][name] = known
		}
	}
}

// Note notes the version of an object of a list that was written, unless nothing is known of the list.
func (l *Lists[K]) Note(key K, name, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if known := l.known[key]; known != nil {
		known[name] = version
	}
}

// Forget drops what is known of a list, so that no cache shows it until it is set again.
func (l *Lists[K]) Forget(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.known == nil {
		l.known = map[K]map[string]string{}
	}

	l.known[key] = nil
}

// Shows reports whether the versions of a list's objects in a cache are at least those that are known. An object that
// is missing may not have reached the cache yet, and one that is older than what is known may have been deleted, so
// both count as a lag. What the cache shows is known from then on.
func (l *Lists[K]) Shows(key K, cached map[string]string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	known := l.known[key]
	if known == nil {
		return false
	}

	for name, version := range known {
		if !isAtLeast(cached[name], version) {
			return false
		}
	}

	for name, version := range cached {
		if _, ok := known[name]; !ok && !isNewest(version, known) {
			return false
		}
	}

	l.known[key] = maps.Clone(cached)

	return true
}

// isNewest reports whether a resource version is newer than all others.
func isNewest(version string, others map[string]string) bool {
	for _, other := range others {
		if !isAtLeast(version, other) {
			return false
		}
	}

	return true
}
