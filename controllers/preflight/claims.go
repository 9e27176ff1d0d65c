package preflight

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Holders has the resources that hold something which only one resource can hold at a time, by a key for what they
// hold: what they have started is not in their status yet. It is safe for concurrent use, and its zero value is
// ready to use.
type Holders[K comparable] struct {
	mu      sync.Mutex
	holders map[K]types.UID
}

// Take reports whether the resource holds what the key is for, which no other can do until Release.
func (h *Holders[K]) Take(key K, resource types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	if holder, taken := h.holders[key]; taken {
		return holder == resource
	}

	if h.holders == nil {
		h.holders = map[K]types.UID{}
	}

	h.holders[key] = resource

	return true
}

// Release ends what a resource holds.
func (h *Holders[K]) Release(resource types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()

	maps.DeleteFunc(h.holders, func(_ K, holder types.UID) bool { return holder == resource })
}

// Claims are the providers that are being installed for the first time, each with the resource that installs it.
// The zero value has none.
type Claims struct{ Holders[claim] }

// claim is a provider of a cluster.
type claim struct {
	cluster string
	kind    v1alpha2.ProviderType
	name    string
}

// Take reports whether the resource may install its provider into a cluster, which no other can do until
// Release.
func (c *Claims) Take(cluster string, p v1alpha2.Provider) bool {
	return c.Holders.Take(claim{cluster: cluster, kind: p.ProviderType(), name: p.GetName()}, p.GetUID())
}
