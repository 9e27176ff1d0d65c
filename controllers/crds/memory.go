package crds

import (
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// maxCached limits the entries of a cache. It is several times the number of CRDs of all known
// providers.
const maxCached = 2000

// memory is what the Appliers of one cluster share. Losing it costs only time.
type memory struct {
	// parsed has the facts of definitions by their digest. If each reconcile parsed them, the correction of one object
	// would take 0.1 s of CPU time instead of 0.05 s.
	parsed lruCache[string, *facts]
	// replaced has the resource versions of CRDs before they were applied last, by their names: without them, a cache
	// that lags would look like drift.
	replaced lruCache[string, string]
	// migrations are those that have begun or are finished, by the names of the CRDs.
	migrations lruCache[string, migration]
	// verdicts has the refusals of CheckChanges, by Plan.verdictKey. Without them, all objects would be read again in
	// each attempt of a provider that waits for a user.
	verdicts *cache.LRUExpireCache

	mu sync.Mutex
	// included has the names of the CRDs in the charts of providers, by their label.
	included map[string]sets.Set[string]
	// needed has the storage versions of the CRDs that the charts of providers include but that are not applied for
	// them, by label and by name.
	needed map[string]map[string]string
	// awaited has the kinds that providers wait for something else to serve, by their label.
	awaited map[string]sets.Set[schema.GroupKind]
	// deletions has the UIDs of the CRDs whose deletion was observed, by their name.
	deletions map[string]types.UID
}

func newMemory() *memory {
	return &memory{
		parsed:     newLRUCache[string, *facts](),
		replaced:   newLRUCache[string, string](),
		migrations: newLRUCache[string, migration](),
		verdicts:   cache.NewLRUExpireCache(maxCached),
		included:   map[string]sets.Set[string]{},
		needed:     map[string]map[string]string{},
		awaited:    map[string]sets.Set[schema.GroupKind]{},
		deletions:  map[string]types.UID{},
	}
}

// rememberCRDs records the CRDs in the current chart of a provider.
func (m *memory) rememberCRDs(label string, files []chart.File) {
	names := sets.New[string]()
	for _, f := range files {
		names.Insert(crdName(f))
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	m.included[label] = names
	m.needed[label] = map[string]string{}
}

// rememberNeed records the version of a CRD that a provider needs although the CRD is not applied for it.
func (m *memory) rememberNeed(label, crd, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.needed[label][crd] = version
}

// users returns the labels of the providers but one that need versions of a CRD, sorted, by the version.
func (m *memory) users(except, crd string) map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()

	users := map[string][]string{}

	for _, label := range slices.Sorted(maps.Keys(m.needed)) {
		if version := m.needed[label][crd]; version != "" && label != except {
			users[version] = append(users[version], label)
		}
	}

	return users
}

// includedCRDs returns the names of the CRDs in the current chart of a provider.
func (m *memory) includedCRDs(label string) sets.Set[string] {
	m.mu.Lock()
	defer m.mu.Unlock()

	return sets.New(m.included[label].UnsortedList()...)
}

// Await records which kinds a provider waits for something else to serve; none if it no longer waits.
func (m *memory) Await(label string, kinds ...schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if delete(m.awaited, label); len(kinds) > 0 {
		m.awaited[label] = sets.New(kinds...)
	}
}

// Forget drops which CRDs a provider includes, needs and waits for.
func (m *memory) Forget(label string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.included, label)
	delete(m.needed, label)
	delete(m.awaited, label)
}

// AffectedProviders returns the labels of the providers that a change of a CRD may affect: the one
// that it belongs to, all whose charts include a CRD of that name, and all that wait for its kind.
func (m *memory) AffectedProviders(crd *apiextensionsv1.CustomResourceDefinition) []string {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}

	labels := sets.New[string]()
	if owner := crd.GetLabels()[v1alpha2.ClusterctlProviderLabel]; owner != "" {
		labels.Insert(owner)
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	for label, names := range m.included {
		if names.Has(crd.GetName()) {
			labels.Insert(label)
		}
	}

	for label, kinds := range m.awaited {
		if kinds.Has(kind) {
			labels.Insert(label)
		}
	}

	return slices.Sorted(maps.Keys(labels))
}

// ObserveDeletion records that a CRD is being deleted and reports whether that was not known yet.
func (m *memory) ObserveDeletion(crd *apiextensionsv1.CustomResourceDefinition) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	first = m.deletions[crd.Name] != crd.UID
	m.deletions[crd.Name] = crd.UID

	return first
}

// forgetDeletion drops the record of a CRD that is not being deleted, or no longer exists.
func (m *memory) forgetDeletion(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.deletions, name)
}

// lruCache is an lru.Cache with types.
type lruCache[K comparable, V any] struct {
	entries *lru.Cache
}

func newLRUCache[K comparable, V any]() lruCache[K, V] {
	return lruCache[K, V]{entries: lru.New(maxCached)}
}

func (c lruCache[K, V]) add(key K, value V) { c.entries.Add(key, value) }

func (c lruCache[K, V]) remove(key K) { c.entries.Remove(key) }

func (c lruCache[K, V]) get(key K) (value V, found bool) {
	entry, found := c.entries.Get(key)
	if !found {
		return value, false
	}

	return entry.(V), true
}
