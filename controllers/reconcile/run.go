package reconcile

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
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

	// pass is how far care and change got.
	pass decide.Pass

	// installed is what was read last, change what is being prepared, and done what was written.
	installed installed
	change    change
	done      done

	// identified is set if no other resource has installed the provider.
	identified bool

	// selection is the version that the range of the resource resolves to.
	selection decide.Selection

	// source is what is known of the provider's source, migration how far objects are rewritten, and crdDeviations are
	// the CRDs that another program has changed.
	source        report.Source
	migration     report.Migration
	crdDeviations []deviation
}

// installed is what a read of the release has found.
type installed struct {
	// observed is set once the release was read.
	observed bool

	// foreign is set if the release belongs to something else: it is neither cared for nor changed.
	// unconfirmed is set if its newest revision is not known to be the resource's: it is not cared for.
	foreign     error
	unconfirmed *release.UnconfirmedError

	history  state.History
	revision state.Revision
	// record is the content of the newest revision; nil if there is none or it cannot be read.
	record *release.Record
	// health of the record's objects; nil until it was read.
	health   *health.Report
	replicas replicas
	// deviations of the objects; nil until they were compared.
	deviations *[]deviation
	// waiting are the objects of a staged revision that wait for others, and removing is set while all
	// that is left to do is to wait for deletions.
	waiting  []waves.Held
	removing bool
	// stale is set if the release was changed since it was read.
	stale bool
}

// healthy reports whether the objects of the revision are known to be healthy, and complete.
func (i *installed) healthy() bool { return i.health != nil && i.health.Healthy() && !i.isStaged() }

// change is what is being prepared for the release.
type change struct {
	plan plan.Plan
	// problem is why inputs could not be used that are not needed for what is installed.
	problem report.Result
	goal    goal
	// release is what follows from the goal for the release.
	release decide.Release

	// coreLater is set if core is not ready and the CRDs may be applied anyway. crds are the changes of CRDs, and
	// crdsChecked describes those that were checked.
	coreLater   bool
	crds        *crds.Plan
	crdsChecked string

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

func newRun(r *Reconciler, provider v1alpha2.Provider, target *clusters.Target) *run {
	spec := plan.ReleaseSpec(provider.GetSpec())
	status := provider.GetStatus()

	retryInterval := ptr.Deref(spec.RetryInterval, metav1.Duration{})

	run := &run{
		Reconciler: r,
		provider:   provider,
		target:     target,
		memory:     r.memoryOf(provider),
		policy: state.Policy{
			Retries:       int(ptr.Deref(spec.Retries, defaultRetries)),
			RetryInterval: retryInterval.Duration,
			Timeout:       plan.Timeout(provider.GetSpec()),
			Rollback:      spec.OnFailure != v1alpha2.FailureNone,
			Paused:        provider.GetSpec().Paused,
			Revert:        spec.OnExternalChange == v1alpha2.ExternalChangeRevert,
			Existed:       status.Release != nil,
			SpecChanged:   provider.GetGeneration() != status.ObservedGeneration,
			Requested:     requested(provider),
		},
	}
	if target != nil {
		run.self = r.Clusters.Owner(provider, target)
		run.arrived = run.memory.arrival(provider.GetGeneration(), time.Now())
		run.memory.unannounced = run.memory.unannounced || run.policy.SpecChanged
	}

	return run
}

// reconcile is the whole reconcile of a resource that is neither suspended nor deleted.
func (r *run) reconcile(ctx context.Context) report.Summary {
	if result := r.observeInstalled(ctx); result.Ends() {
		return report.Summary{Result: result}
	}

	if revision := plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo; revision != nil {
		r.change.goal = r.rollbackGoal(int(*revision))
	}

	r.takeSteps(ctx)

	if early, is := r.pass.Early(); is {
		return early
	}

	r.lookUpgrades(ctx)

	ended := r.pass.Summary(r.input())
	if ended.Outcome == report.Ready {
		ended.Result = r.migrateCRDs(ctx, ended.Result)
	}

	return ended
}

// takeSteps takes the steps of care and change.
func (r *run) takeSteps(ctx context.Context) {
	spent := map[metrics.Step]time.Duration{}
	seen := r.known()

	for {
		pass, step := r.pass.Next(seen)
		logStep(ctx, step)

		if step.Action == decide.Finish {
			break
		}

		began := time.Now()
		result := r.take(ctx, step)
		seen = r.known()
		r.pass = pass.After(step, result, seen)

		if timed, is := timedActions[step.Action]; is {
			spent[timed] += time.Since(began)
		}
	}

	for step, took := range spent {
		r.Metrics.ObserveStep(r.Type, step, took)
	}
}

// logStep logs a step, with the rule that decided on it.
func logStep(ctx context.Context, step decide.Step) {
	ctrl.LoggerFrom(ctx).V(1).Info("Decided", "rule", step.Row, "action", step.Action)
}

// take takes a step.
func (r *run) take(ctx context.Context, step decide.Step) report.Result {
	switch step.Action {
	case decide.Nothing:
		r.wakeAt(step.Until)
		r.requeueStaged()
	case decide.MarkFailed:
		return r.markFailed(ctx, step)
	case decide.CheckTarget:
		return r.checkReturn(ctx, step.Target)
	case decide.Rollback:
		return r.rollBack(ctx, step.Target)
	case decide.Block:
		r.block(ctx, step.Result.Message)
	case decide.Reassess:
		r.assess()
	case decide.Leave, decide.End:
	default:
		return actions[step.Action](r, ctx)
	}

	return report.Result{}
}

// known returns what is known so far.
func (r *run) known() decide.Seen {
	return decide.Seen{
		Installed: r.seen(),
		Stale:     r.installed.stale,
		Policy:    r.policy,
		Rules:     r.target.Releases.Rules(),
		Waiting: decide.Waiting{
			Staged: r.installed.isStaged(), ForManager: r.needsPausedManager(), ForDeletions: r.installed.removing,
		},
		Lost:     r.lostMeanwhile(),
		Compares: driftPolicy(r.provider.GetSpec()) != v1alpha2.DriftOff,
		Change:   r.changing(),
	}
}

// careAgain reads the release again: the change leaves another newest revision behind, or did not come to replace the
// one that care was deferred for.
func (r *run) careAgain(ctx context.Context) report.Result {
	result := r.observe(ctx)
	r.policy, r.done = decide.Again(r.policy), done{applied: r.done.applied, failure: r.done.failure}

	return result
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

// timedActions are the actions of a change that metrics show, with the steps that they are part of.
var timedActions = map[decide.Action]metrics.Step{
	decide.CheckRequirements: metrics.StepPreflight,
	decide.CheckCore:         metrics.StepPreflight,
	decide.PlanCRDs:          metrics.StepCRDs,
	decide.MigrateObjects:    metrics.StepCRDs,
	decide.CheckCRDs:         metrics.StepCRDs,
	decide.DryRun:            metrics.StepCRDs,
	decide.ApplyCRDs:         metrics.StepCRDs,
	decide.CorrectCRDs:       metrics.StepCRDs,
	decide.Apply:             metrics.StepRelease,
}

// changing returns what the change depends on, besides what was seen of the release.
func (r *run) changing() decide.Changing {
	known := decide.Changing{
		Core:        r.Type == v1alpha2.CoreProviderType,
		Returns:     plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo != nil,
		Arrived:     r.arrived,
		Foreign:     failed(r.installed.foreign, applying),
		Starts:      r.selection.Starts(),
		Selected:    r.selection.Version,
		Unpinned:    r.provider.GetSpec().Version == "",
		OwnsVersion: slices.ContainsFunc(r.provider.GetManagedFields(), writesVersion),
		Problem:     r.change.problem,
		Release:     r.change.release,
		CoreLater:   r.change.coreLater,
		Applied:     r.done.applied,
		Now:         time.Now(),
	}

	if r.change.plan.Chart != nil {
		known.Found = r.change.plan.Version
	}

	// A rollback has no plan.
	if r.change.goal.apply != nil {
		known.Planned.Known = true

		if chart := r.change.plan.Chart; chart != nil {
			known.Planned.Version, known.Planned.Contract = chart.Version(), chart.Contract()
		}
	}

	if r.change.crds != nil {
		known.CRDsDiffer = r.change.crds.HasChanges()
	}

	return known
}

// actions take the actions of care and change.
var actions = map[decide.Action]func(*run, context.Context) report.Result{
	decide.Prune:        (*run).prune,
	decide.Compare:      (*run).correctDrift,
	decide.CompareLost:  (*run).correctDrift,
	decide.CheckHealth:  (*run).checkHealth,
	decide.MarkFinished: (*run).markFinished,
	decide.Advance:      (*run).advance,
	decide.MarkHealthy:  (*run).markHealthy,
	decide.CareAgain:    (*run).careAgain,
	decide.CareForCRDs:  (*run).careForCRDs,

	decide.Identify:          (*run).identify,
	decide.Select:            (*run).selectVersion,
	decide.Plan:              (*run).makePlan,
	decide.PinVersion:        (*run).pinVersion,
	decide.DisownVersion:     (*run).disownVersion,
	decide.Observe:           (*run).observe,
	decide.CompareRelease:    (*run).compareRelease,
	decide.MarkRequest:       (*run).markHandled,
	decide.CheckRevision:     (*run).checkRevision,
	decide.CheckRequirements: (*run).checkRequirements,
	decide.CheckCore:         (*run).checkCore,
	decide.CheckTurn:         (*run).checkTurn,
	decide.CheckInstalled:    (*run).checkInstalled,
	decide.PlanCRDs:          (*run).planChange,
	decide.MigrateObjects:    (*run).migrateChange,
	decide.CheckCRDs:         (*run).checkChange,
	decide.DryRun:            (*run).dryRun,
	decide.ApplyCRDs:         (*run).applyChange,
	decide.CorrectCRDs:       (*run).correctChange,
	decide.Announce:          (*run).announceChange,
	decide.Apply:             (*run).apply,
	decide.AwaitCRDs:         (*run).awaitCRDs,
}
