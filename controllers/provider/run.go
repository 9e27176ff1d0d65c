package provider

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/health"
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

// goal is the desired state of the release.
type goal struct {
	// version that users know it by, and its contract with Cluster API; empty for a revision.
	version, contract string
	// digest identifies it in the release's history.
	digest string
	// action counts it where there is a release already.
	action metrics.Action
	// apply takes the one Helm action that reaches the goal from a state; nil if it cannot be planned.
	apply func(context.Context, state.Observed) (release.Result, error)
}

// owner returns the release whose objects are checked.
func (r *run) owner() health.Owner {
	return health.Owner{
		Provider:  v1alpha2.Label(r.provider),
		Release:   v1alpha2.ReleaseName(r.provider),
		Namespace: r.provider.GetNamespace(),
		Reader:    r.target.Client,
	}
}
