package foreign

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// searchTrust is how long the result of a search is used: a resource that waits for core tries to install
// its provider several times.
const searchTrust = time.Minute

// Searches are the last times at which Finder.Elsewhere has found nothing, by the UID of the provider's
// resource. The zero value is ready to use, also concurrently.
type Searches struct {
	mu    sync.Mutex
	times map[types.UID]time.Time
}

// IsRecent reports whether a search for the provider of a resource has found nothing in the last minute.
func (s *Searches) IsRecent(resource types.UID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	searched, found := s.times[resource]

	return found && now.Sub(searched) < searchTrust
}

// Add records that a search has found nothing, and forgets those that are no longer of use.
func (s *Searches) Add(resource types.UID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	maps.DeleteFunc(s.times, func(_ types.UID, searched time.Time) bool { return now.Sub(searched) >= searchTrust })

	if s.times == nil {
		s.times = map[types.UID]time.Time{}
	}

	s.times[resource] = now
}
