package provider

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
)

// memory is what is remembered of a resource from one reconcile to the next. It may be lost without harm. Only the
// reconcile of the resource uses it, and there is one at a time.
type memory struct {
	uid types.UID
	// arrived is when the generation was seen first. A change that must not overtake others that were made together with
	// it can so be held back until they have arrived.
	generation int64
	arrived    time.Time
	// unannounced is set until events about the change have been emitted. What they are about may become known only after
	// other reconciles of the generation.
	unannounced bool
	corrections backoff
	// prevented is the automatic upgrade that a check has prevented last.
	prevented prevented
	// planned is the plan of the last reconcile; nil if the provider was ready then.
	planned *planned
	// awaiting is what the resource asked for when its first installation was planned and found to wait for core; nil
	// unless it waits.
	awaiting *asked
	// alone is when the provider was looked for elsewhere in its cluster last, and not found; zero for never.
	alone time.Time
	// search is how far the search for the objects of the release has come, and searched its newest revision; nil unless
	// it was not complete.
	search   *apply.Progress
	searched int
	// listed is when the provider's item in clusterctl's inventory was brought up to date last; zero if that has failed.
	listed time.Time
	// secrets are the CAs of Secrets, as they were read last.
	secrets map[types.NamespacedName]secretCAs
	// told is the failed attempt that an event was about last.
	told attempt
	// unsettled is the newest generation that was reported although the status does not say so, because it was lost.
	unsettled int64
}

// arrival returns when a generation was seen first: now, unless it was asked before.
func (m *memory) arrival(generation int64, now time.Time) time.Time {
	if m.generation != generation || m.arrived.IsZero() {
		m.generation, m.arrived = generation, now
	}

	return m.arrived
}

// searching returns how far the search for the objects of a release has come. It begins again if another program has
// made a newer revision.
func (m *memory) searching(newest int) *apply.Progress {
	if m.search == nil || m.searched != newest {
		m.search, m.searched = &apply.Progress{}, newest
	}

	return m.search
}

// memories are those of the resources of one kind. It is safe for concurrent use, and its zero value is ready to use.
type memories struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*memory
}

// get returns what is remembered of a name; nil for nothing.
func (m *memories) get(name types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.byName[name]
}

// set replaces what is remembered of a name; nil is nothing.
func (m *memories) set(name types.NamespacedName, now *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.byName == nil {
		m.byName = map[types.NamespacedName]*memory{}
	}

	if m.byName[name] = now; now == nil {
		delete(m.byName, name)
	}
}

// memoryOf returns what is remembered of a resource, and drops what is of an earlier one of the same name.
func (r *Reconciler) memoryOf(provider v1alpha2.Provider) *memory {
	name := client.ObjectKeyFromObject(provider)

	found := r.memories.get(name)
	if found != nil && found.uid == provider.GetUID() {
		return found
	}

	r.forgetGone(name)

	found = &memory{uid: provider.GetUID(), told: toldOf(provider)}
	r.memories.set(name, found)

	return found
}

// toldOf returns the failed attempt that an earlier process has reported by an event, by the status that it has left.
func toldOf(provider v1alpha2.Provider) attempt {
	stalled := v1alpha2.FindCondition(provider.GetConditions(), v1alpha2.StalledCondition).Status == metav1.ConditionTrue

	for _, entry := range provider.GetStatus().History {
		if entry.Status == v1alpha2.RevisionFailed {
			return attempt{entry.Number, stalled}
		}
	}

	return attempt{}
}

// forgetGone drops what is remembered of a resource that no longer exists: it may have had no finalizer, or a user may
// have removed that.
func (r *Reconciler) forgetGone(name types.NamespacedName) {
	found := r.memories.get(name)
	if found == nil {
		return
	}

	provider := r.Type.New()
	provider.SetNamespace(name.Namespace)
	provider.SetName(name.Name)
	provider.SetUID(found.uid)

	r.forget(provider)
}

// forget drops what is remembered of a provider.
func (r *Reconciler) forget(provider v1alpha2.Provider) {
	r.memories.set(client.ObjectKeyFromObject(provider), nil)
	r.Clusters.Forget(provider)
	r.Watches.Follow(inputsOf(provider))
	r.Planner.Charts.Forget(provider)
	r.Offers.Forget(provider.GetUID())
	r.Metrics.Forget(provider)
}
