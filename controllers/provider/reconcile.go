package provider

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// reconcile is the whole reconcile of a resource.
func (r *run) reconcile(ctx context.Context) Summary {
	deleted, suspended := !r.provider.GetDeletionTimestamp().IsZero(), r.provider.GetSpec().Suspend

	switch {
	case deleted && suspended:
		return Summary{Result: deletionSuspended(r.Suspended)}
	case !deleted && !suspended:
		if err := r.own(ctx); err != nil {
			return r.endedEarly(err)
		}
	}

	unreached := r.reach(ctx)

	switch {
	case deleted:
		removed := r.inTime(ctx, func(ctx context.Context) error { return r.remove(ctx, unreached) })
		return Summary{Result: removalResult(resultOf(removed))}
	case unreached != nil:
		return r.endedEarly(unreached)
	case suspended:
		return Summary{Result: r.show(ctx)}
	}

	return r.maintain(ctx)
}

// reach finds the cluster that the provider is installed in.
func (r *run) reach(ctx context.Context) error {
	target, err := r.Clusters.For(ctx, r.provider)
	if err != nil {
		return err
	}

	// What is read before its namespace is watched may change unnoticed: the first list of a watch wakes nothing.
	if !r.Watches.Await(ctx, r.provider.GetNamespace()) {
		r.wakeAfter(unwatchedDelay)
	}

	r.leaveFormerCluster(r.provider, target.ClusterUID())

	r.target = target
	r.policy = policyOf(r.provider)

	if r.lost() && r.memory.unsettled == r.provider.GetGeneration() {
		r.policy.SpecChanged = false
	}

	r.self = r.Clusters.Owner(r.provider, target)
	r.arrived = r.memory.arrival(r.provider.GetGeneration(), time.Now())
	r.memory.unannounced = r.memory.unannounced || r.policy.SpecChanged

	return nil
}

// show finds out how a suspended provider is, of which nothing is changed.
func (r *run) show(ctx context.Context) Result {
	if err := r.inTime(ctx, r.observe); err != nil {
		return resultOf(err)
	}

	r.findLost(ctx)

	_ = r.inTime(ctx, r.identify) // another resource may have installed it

	if r.installed.Record != nil {
		for _, look := range []func(context.Context) error{r.checkHealth, r.compareObjects, r.compareCRDs} {
			if err := r.inTime(ctx, look); err != nil {
				return resultOf(err)
			}
		}
	}

	return r.suspended()
}

// maintain takes care of what is installed, and changes it to what the resource asks for.
func (r *run) maintain(ctx context.Context) Summary {
	r.Metrics.InitCounters(r.provider)

	ended := r.careAndChange(ctx)

	if err := r.noteVersions(ctx); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot note the version in annotations of the resource")
	}

	request := r.provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]
	r.provider.GetStatus().LastHandledReconcileAt = request

	for step, took := range r.spent {
		r.Metrics.ObserveStep(r.Type, step, took)
	}

	return ended
}

// endedEarly returns the summary of a reconcile that an error has ended without care for what is installed.
func (r *run) endedEarly(err error) Summary { return r.summarize(Result{}, resultOf(err)) }

func (r *run) careAndChange(ctx context.Context) Summary {
	if err := r.inTime(ctx, r.observeInstalled); err != nil {
		return r.endedEarly(err)
	}

	care := r.inTime(ctx, r.care)

	changed := r.makeChange(ctx)
	r.noteWait(resultOf(changed))

	// The change has left another newest revision, or did not come to replace the one that was left to it.
	if r.done.applied || r.leftToChange {
		if err := r.inTime(ctx, r.observeAgain); err != nil {
			return r.endedEarly(err)
		}

		care = r.inTime(ctx, r.care)

		if r.change.release.Decision.Action != "" {
			r.assess()
		}
	}

	// The change has ended before it got to the CRDs.
	if !r.change.crds.applied {
		care = first(care, r.inTime(ctx, r.careForCRDs))
	}

	r.lookUpgrades(ctx)

	ended := r.summarize(resultOf(care), resultOf(changed))

	switch {
	case ended.Outcome != Ready:
	case r.unfound != nil:
		return r.endedEarly(r.unfound)
	default:
		_ = r.inTime(ctx, func(ctx context.Context) error {
			ended.Result = r.migrateCRDs(ctx, ended.Result)
			return nil
		})
	}

	return ended
}

// observeAgain reads the release after the change, for care that begins again.
func (r *run) observeAgain(ctx context.Context) error {
	err := r.observe(ctx)

	// What the resource asks for was tried.
	r.policy.SpecChanged, r.policy.Requested, r.policy.Refused = false, false, nil
	r.done = done{applied: r.done.applied, failure: r.done.failure}

	return err
}

// inTime does a part of the work in the time that a remote cluster gets for it. One that answers slowly, but answers,
// gets to the next part.
func (r *run) inTime(ctx context.Context, part func(context.Context) error) error {
	if r.target != nil && r.target.Remote {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, remoteTimeout)
		defer cancel()
	}

	return part(ctx)
}
