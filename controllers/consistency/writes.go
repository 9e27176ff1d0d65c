package consistency

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes are the versions of what this process has written, by keys, as long as a cache may not show them yet. The zero
// value is ready to use. It is safe for concurrent use.
type Writes[K comparable] struct {
	mu       sync.Mutex
	versions map[K]string
}

// Note records the version of a resource that was written; empty if the version is not known.
func (w *Writes[K]) Note(key K, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.versions == nil {
		w.versions = map[K]string{}
	}

	w.versions[key] = version
}

// Forget drops what was written.
func (w *Writes[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()

	delete(w.versions, key)
}

// DropLost drops what was written if the version that the API server has is older.
func (w *Writes[K]) DropLost(key K, live string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if !isAtLeast(live, w.versions[key]) {
		delete(w.versions, key)
	}
}

// Shows reports whether a cache that has a version shows what was written. Then there is no need to know it any more.
func (w *Writes[K]) Shows(key K, cached string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	if written, exists := w.versions[key]; exists && !isAtLeast(cached, written) {
		return false
	}

	delete(w.versions, key)

	return true
}

// Newest returns the newest one of some versions; empty if there is none.
func Newest(versions []string) (newest string) {
	for _, version := range versions {
		if newest == "" || isAtLeast(version, newest) {
			newest = version
		}
	}

	return newest
}

// isAtLeast reports whether a resource version is another one or a newer one. It is neither if they cannot be compared.
func isAtLeast(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
