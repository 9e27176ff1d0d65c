package watch

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Providers watches the kinds whose resources can concern the kind's own: core, which all others
// wait for, the kind itself, and, for core, all others.
func (k Kind) Providers(b *ctrl.Builder) *ctrl.Builder {
	for _, t := range v1alpha2.ProviderTypes() {
		if t == k.Type || t == v1alpha2.CoreProviderType || k.Type == v1alpha2.CoreProviderType {
			b = b.Watches(t.New(), k.providers(t), builder.WithPredicates(standingChanged))
		}
	}

	return b
}

// providers enqueues the resources that another provider in the same cluster concerns: those that
// wait for core or for a change of contract, a duplicate in another namespace, and core while it
// waits for its deletion.
func (k Kind) providers(t v1alpha2.ProviderType) handler.EventHandler {
	field := keysField
	keys := func(client.Object) []string { return []string{waitingKey} }

	if t == k.Type {
		field = preflight.NameField
		keys = func(changed client.Object) []string { return []string{changed.GetName()} }
	}

	concerns := func(p v1alpha2.Provider, changed client.Object) bool {
		other, ok := changed.(v1alpha2.Provider)
		return ok && waits(p) && p.GetUID() != other.GetUID() && v1alpha2.Cluster(p) == v1alpha2.Cluster(other)
	}

	return handler.EnqueueRequestsFromMapFunc(k.enqueue(field, keys, concerns))
}

// standing is what other providers' preflight checks and removal read from a resource. While
// hundreds of providers wait for core, any other change of core's status would wake them in vain.
type standing struct {
	generation                                   int64
	deleting, ready, installed, released, paused bool
	contract                                     string
}

func standingOf(o client.Object) standing {
	p, ok := o.(v1alpha2.Provider)
	if !ok {
		return standing{}
	}

	s := standing{
		generation: p.GetGeneration(),
		deleting:   !p.GetDeletionTimestamp().IsZero(),
		ready:      conditions.IsReady(p),
		installed:  conditions.IsTrue(p, v1alpha2.ProviderInstalledCondition),
		released:   p.GetStatus().Release != nil,
		paused:     conditions.IsTrue(p, v1alpha2.PausedCondition),
	}
	if contract := p.GetStatus().Contract; contract != nil {
		s.contract = *contract
	}

	return s
}

// standingChanged passes on the updates that matter to other providers.
var standingChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool { return standingOf(e.ObjectOld) != standingOf(e.ObjectNew) },
}
