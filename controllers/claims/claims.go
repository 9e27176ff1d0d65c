// Package claims decides which of several resources that define the same provider of a cluster installs it.
package claims

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Set contains the providers that are being installed for the first time, each with the resource that installs it.
// The zero value is an empty set.
type Set struct {
	mu      sync.Mutex
	holders map[claim]types.UID
}

// claim is a provider of a cluster.
type claim struct {
	cluster string
	kind    v1alpha2.ProviderType
	name    string
}

// Take reports whether the resource may install its provider into a cluster, which no other can do until
// Release.
func (s *Set) Take(cluster string, p v1alpha2.Provider) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	wanted := claim{cluster: cluster, kind: p.ProviderType(), name: p.GetName()}
	if holder, taken := s.holders[wanted]; taken {
		return holder == p.GetUID()
	}

	if s.holders == nil {
		s.holders = map[claim]types.UID{}
	}

	s.holders[wanted] = p.GetUID()

	return true
}

// Release ends the claims of a resource.
func (s *Set) Release(resource types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	maps.DeleteFunc(s.holders, func(_ claim, holder types.UID) bool { return holder == resource })
}
