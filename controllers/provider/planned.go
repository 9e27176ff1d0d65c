package provider

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// planTime is how long a plan is used while nothing changes that the resource uses. A change takes several reconciles,
// and not all that a plan depends on is watched, such as the operator's configuration.
const planTime = 30 * time.Second

// planned is what a resource asked for, and the plan of that. It is not kept once the provider is ready.
type planned struct {
	asked asked
	plan  plan.Plan
	at    time.Time
}

// plan returns the plan of what the resource asks for: that of an earlier reconcile of the same change, or a new one.
func (r *run) plan(ctx context.Context) (plan.Plan, error) {
	refresh, now := r.refreshes(), r.findAsked()

	if last := r.memory.planned; last != nil && !refresh && r.stillServes(last, now) {
		r.newSalt = last.plan.Release.Salt
		return last.plan, nil
	}

	unwatched := r.Watches.Unwatched(namedNamespaces(r.provider)...)
	made, err := r.Planner.Plan(ctx, plan.Request{
		Provider: r.provider, Scope: r.target.Client, Selected: r.selection.Version, Refresh: refresh,
		Salt: r.salt(), Asking: sync.OnceFunc(func() { r.status.asks(ctx, r.provider) }),
	})
	r.followInputs(ctx, unwatched, err)

	r.keepPlan(now, made, err)

	return made, err
}

// keepPlan keeps a plan for later reconciles of the same change, unless it has failed, or may not be what the source
// has.
func (r *run) keepPlan(asked asked, made plan.Plan, err error) {
	r.memory.planned = nil

	if err == nil && made.Chart.Outdated == nil {
		r.memory.planned = &planned{asked, made, time.Now()}
	}
}

// stillServes reports whether a plan is still that of what the resource asks for.
func (r *run) stillServes(last *planned, now asked) bool {
	version := cmp.Or(r.selection.Version, r.provider.GetStatus().DesiredVersion)
	salted := !r.installed.isOwn() || r.installed.Record.Salt == last.plan.Release.Salt

	return salted && version == last.plan.Version && time.Since(last.at) < planTime && reflect.DeepEqual(now, last.asked)
}

// salt returns the salt of the release's digests: that of its newest record, or a new one if there is none that is
// known to be the resource's.
func (r *run) salt() string {
	if r.newSalt == "" {
		r.newSalt = storage.NewSalt()
	}

	if r.installed.isOwn() && r.installed.Record.Salt != "" {
		return r.installed.Record.Salt
	}

	return r.newSalt
}
