package provider

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// defaultRetries is the default of spec.release.retries that the API documents.
const defaultRetries = 3

// run is one reconcile of one provider: what it was given, and what its steps have found, prepared and written.
type run struct {
	*Reconciler
	provider v1alpha2.Provider
	target   *clusters.Target
	policy   state.Policy
	memory   *memory
	// arrived is when the resource was seen first in its generation.
	arrived time.Time
	// status says what is being done while that takes long.
	status *statusWriter
	// self is how the resource is recorded as the owner of its release.
	self state.Owner

	// spent is how long the steps of the change took.
	spent map[metrics.Step]time.Duration
	// newSalt is the salt of the release's digests if it has none.
	newSalt string
	// added is set if the finalizer was added in this run.
	added bool

	// found are the objects of the release that were searched for, because its inventory lacks them. searched is set if
	// these are all, and unfound is why they are not.
	found    []object.Key
	searched bool
	unfound  error

	// installed is what was read last, change what is being prepared, and done what was written.
	installed installed
	change    change
	done      done

	// leftToChange is set if care has left the newest revision to the change.
	leftToChange bool

	// identified is set if no other resource has installed the provider.
	identified bool

	// selection is the version that the range of the resource resolves to.
	selection offers.Selection

	// offered are the versions to upgrade to, if offersKnown says that the source has listed its versions.
	offersKnown bool
	offered     []v1alpha2.AvailableUpgrade
	// migration is how far objects are rewritten, and crdDeviations are the CRDs that another program has changed.
	migration     migration
	crdDeviations []deviation
	// namesKept is a remark about CRDs that are served without names that they ask for; empty for none.
	namesKept string
}

// change is what is being prepared for the release.
type change struct {
	// begun is set once what the resource asks for is being planned.
	begun bool
	plan  plan.Plan
	// problem is why inputs could not be used that are not needed for what is installed.
	problem Result
	goal    goal
	// release is what follows from the goal for the release.
	release comparison

	crds crdChange
	// passed is set if nothing prevents the release from being what the resource asks for.
	passed bool

	// prepared is the installation or upgrade, once nothing but to apply it is left to do.
	prepared *release.Prepared
}

// done is what writes have achieved.
type done struct {
	// advanced is set after a step with a staged revision.
	advanced bool
	// applied is set once a revision was created, and failure is why that has failed.
	applied bool
	failure error
	// refusal is why a failed revision was not rolled back although it should have been.
	refusal string
	// undeleted describes objects that the newest revision does not have, and that finalizers hold; empty for none.
	undeleted   string
	uninstalled bool
}

func newRun(r *Reconciler, provider v1alpha2.Provider) *run {
	return &run{
		Reconciler: r,
		provider:   provider,
		memory:     r.memoryOf(provider),
		policy:     policyOf(provider),
		status:     newStatusWriter(r.Client, r.APIReader, provider),
		spent:      map[metrics.Step]time.Duration{},
	}
}

// policyOf returns what the resource says of its release.
func policyOf(provider v1alpha2.Provider) state.Policy {
	spec := plan.ReleaseSpec(provider.GetSpec())
	status := provider.GetStatus()

	return state.Policy{
		Retries:       int(ptr.Deref(spec.Retries, defaultRetries)),
		RetryInterval: ptr.Deref(spec.RetryInterval, metav1.Duration{}).Duration,
		Timeout:       plan.Timeout(provider.GetSpec()),
		Rollback:      spec.OnFailure != v1alpha2.FailureNone,
		Paused:        provider.GetSpec().Paused,
		Revert:        spec.OnExternalChange == v1alpha2.ExternalChangeRevert,
		Existed:       status.Release != nil,
		SpecChanged:   provider.GetGeneration() != status.ObservedGeneration,
		Requested:     requested(provider),
	}
}

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

// wakeAt requeues the provider at a time; not if that is zero.
func (r *run) wakeAt(at time.Time) {
	if !at.IsZero() {
		r.wakeAfter(at.Sub(r.policy.Now))
	}
}

// wakeAfter requeues the provider after a delay.
func (r *run) wakeAfter(delay time.Duration) {
	r.Wake(v1alpha2.Label(r.provider), r.provider.GetNamespace(), delay)
}
