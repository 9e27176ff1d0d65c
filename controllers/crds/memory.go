package crds

import (
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// memory is what the Appliers of one cluster share. Losing it costs only time.
type memory struct {
	mu sync.Mutex
	// crds has what is remembered of CRDs, by their names.
	crds map[string]remembered
	// included has the CRDs in the charts of providers, by the label. The value is the storage version that a provider
	// needs of a CRD that is not applied for it; empty for others.
	included map[string]map[string]string
	// awaited has the kinds that providers wait for something else to serve, by their label.
	awaited map[string]sets.Set[schema.GroupKind]
}

// remembered is what is remembered of one CRD.
type remembered struct {
	// definition is the one that was planned last.
	definition facts
	// replaced is the resource version before the CRD was applied last. Without it, a cache that lags would look like
	// drift.
	replaced string
	// migration is the one that has begun or is finished.
	migration migration
	// deleted is the UID that it had when its deletion was observed.
	deleted types.UID
}

// facts are what plans need of a definition, whose file can have hundreds of kilobytes.
type facts struct {
	digest string
	// served are the names of its versions, and whether each is served; nil if that is not known yet.
	served map[string]bool
	// applied are the fields that applying it makes Capstan's; nil if that is not known yet.
	applied *fieldpath.Set
}

func newMemory() *memory {
	return &memory{
		crds:     map[string]remembered{},
		included: map[string]map[string]string{},
		awaited:  map[string]sets.Set[schema.GroupKind]{},
	}
}

// of returns what is remembered of a CRD.
func (m *memory) of(crd string) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.crds[crd]
}

// update changes what is remembered of a CRD.
func (m *memory) update(crd string, change func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()

	r := m.crds[crd]
	change(&r)
	m.crds[crd] = r
}

// factsOf returns what is remembered of a definition.
func (m *memory) factsOf(d definition) facts {
	if f := m.of(d.name).definition; f.digest == d.digest {
		return f
	}

	return facts{digest: d.digest}
}

// learn changes what is remembered of a definition.
func (m *memory) learn(d definition, change func(*facts)) {
	m.update(d.name, func(r *remembered) {
		if r.definition.digest != d.digest {
			r.definition = facts{digest: d.digest}
		}

		change(&r.definition)
	})
}

// rememberCRDs records the CRDs in the current chart of a provider.
func (m *memory) rememberCRDs(label string, files []chart.File) {
	included := map[string]string{}
	for _, f := range files {
		included[crdName(f)] = ""
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	m.included[label] = included
}

// rememberNeed records the version of a CRD that a provider needs although the CRD is not applied for it.
func (m *memory) rememberNeed(label, crd, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if included := m.included[label]; included != nil {
		included[crd] = version
	}
}

// users returns the labels of the providers but one that need versions of a CRD, sorted, by the version.
func (m *memory) users(except, crd string) map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()

	users := map[string][]string{}

	for _, label := range slices.Sorted(maps.Keys(m.included)) {
		if version := m.included[label][crd]; version != "" && label != except {
			users[version] = append(users[version], label)
		}
	}

	return users
}

// includedByOthers reports whether the current chart of another provider than one includes a CRD.
func (m *memory) includedByOthers(label, crd string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	for other, included := range m.included {
		if _, includes := included[crd]; includes && other != label {
			return true
		}
	}

	return false
}

// includedCRDs returns the names of the CRDs in the current chart of a provider.
func (m *memory) includedCRDs(label string) sets.Set[string] {
	m.mu.Lock()
	defer m.mu.Unlock()

	return sets.KeySet(m.included[label])
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
	delete(m.awaited, label)
}

// concerned returns the labels of the providers that a CRD belongs to, whose charts include one of its name, and that
// wait for its kind.
func (m *memory) concerned(crd *apiextensionsv1.CustomResourceDefinition) []string {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}

	labels := sets.New[string]()
	if owner := crd.GetLabels()[v1alpha2.ClusterctlProviderLabel]; owner != "" {
		labels.Insert(owner)
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	for label, names := range m.included {
		if _, includes := names[crd.Name]; includes {
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
	m.update(crd.Name, func(r *remembered) { first, r.deleted = r.deleted != crd.UID, crd.UID })

	return first
}
