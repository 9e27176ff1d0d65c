package watch

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Providers watches the resources of all kinds, because they can concern those of the kind.
func (k Kind) Providers(b *ctrl.Builder) *ctrl.Builder {
	for _, t := range v1alpha2.ProviderTypes() {
		b = b.Watches(t.New(), k.otherProviders(t))
	}

	return b
}

// otherProviders enqueues the waiting resources that a provider of kind t in the same cluster concerns. One handler
// does that for all concerns, because each one costs a buffer for a thousand events and two goroutines, for each pair
// of kinds.
func (k Kind) otherProviders(t v1alpha2.ProviderType) handler.EventHandler {
	all := k.concerns(t)

	return onChange(func(ctx context.Context, before, now, changed client.Object) (found []reconcile.Request) {
		ends := t != v1alpha2.CoreProviderType || endsWait(before, now)
		concerns := func(p v1alpha2.Provider, changed client.Object) bool {
			other, ok := changed.(v1alpha2.Provider)

			return ok && waits(p) && (ends || !awaitsCore(p)) &&
				p.GetUID() != other.GetUID() && k.Cluster.Same(p, other)
		}

		for _, c := range all {
			if c.changed(before, now) {
				found = append(found, k.enqueue(c.field, c.keys, concerns)(ctx, changed)...)
			}
		}

		return found
	})
}

// concern is a way in which a provider can concern resources of a kind that wait.
type concern struct {
	// field and keys find the resources.
	field string
	keys  func(client.Object) []string
	// changed selects the changes that can end their waiting. The provider is nil before it was created, and after it
	// was deleted.
	changed func(before, now client.Object) bool
}

// concerns returns the ways in which providers of kind t can concern the kind's resources: those that
// wait for core, for a dependency, or for a change of contract; a duplicate in another namespace; and core, which waits
// for all others before it changes its contract or is deleted.
func (k Kind) concerns(t v1alpha2.ProviderType) []concern {
	core := v1alpha2.CoreProviderType
	waiting := func(client.Object) []string { return []string{waitingKey} }
	name := func(changed client.Object) []string { return []string{changed.GetName()} }

	dependents := func(changed client.Object) []string {
		return []string{dependentKey(t.Label(changed.GetName()))}
	}
	concerns := []concern{{keysField, dependents, standingChanged}}

	if t == k.Type {
		concerns = append(concerns, concern{preflight.NameField, name, standingChanged})
	}

	switch {
	case t == core && k.Type == core:
	case t == core, k.Type == core:
		concerns = append(concerns, concern{keysField, waiting, standingChanged})
	default:
		concerns = append(concerns, concern{keysField, waiting, contractGone})
	}

	return concerns
}

// standing is what preflight checks and removals of other providers depend on. While hundreds of providers wait for
// core, any other change of core's status would wake them in vain.
type standing struct {
	preflight.Standing

	generation int64
}

func standingOf(o client.Object) standing {
	p, ok := o.(v1alpha2.Provider)
	if !ok {
		return standing{}
	}

	return standing{Standing: preflight.StandingOf(p), generation: p.GetGeneration()}
}

// standingChanged selects what matters to other providers.
func standingChanged(before, now client.Object) bool {
	return before == nil || now == nil || standingOf(before) != standingOf(now)
}

// awaitsCore reports whether a provider waits until core is ready, or has changed.
func awaitsCore(p v1alpha2.Provider) bool { return preflight.StandingOf(p).WaitsForCore }

// endsWait selects the changes of core that may end what waits for it, or that make it wait for something else. The
// steps of core's own installation or upgrade would wake it in vain.
func endsWait(before, now client.Object) bool {
	was, is := standingOf(before), standingOf(now)
	usable := func(s standing) bool { return s.Ready || s.Keeps }

	return before == nil || now == nil || was.Deleted != is.Deleted || was.generation != is.generation ||
		!usable(was) && usable(is) || was.Changing && !is.Changing
}

// contractGone selects that a provider no longer has the contract that it had. Other providers may
// stay paused until then. They do not wait for anything that a first installation changes, so one of
// hundreds does not wake the rest.
func contractGone(before, now client.Object) bool {
	contract := standingOf(before).Contract
	return contract != "" && contract != standingOf(now).Contract
}
