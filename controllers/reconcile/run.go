package reconcile

import (
	"context"

	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/autoupgrade"
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

// run is one reconcile of one provider. Its steps fill it in.
type run struct {
	*Reconciler
	provider v1alpha2.Provider
	target   *clusters.Target
	policy   state.Policy
	began    time.Time
	memory   *memory
	// arrived is when the resource was seen first in its generation.
	arrived time.Time
	// status says what is being done while that takes long.
	status *statusWriter
	// self is how the resource is recorded as the owner of its release.
	self state.Owner

	// observed is set once the release was read, and unobserved if the account must not read it.
	observed   bool
	unobserved error

	// foreign is set if the release belongs to something else: it is neither cared for nor changed.
	// unconfirmed is set if its newest revision is not known to be the resource's: it is not cared for.
	foreign     error
	unconfirmed *unconfirmedError

	// What care has done with the newest revision; allowed is the number of a revision that the provider may return
	// to, and advanced is set after a step with a staged revision.
	done     []decide.Action
	allowed  int
	advanced bool

	// What care finds out: the newest revision, and its deviations, which are nil until they were
	// compared. deferred is set if care left the revision to the change, which may replace it.
	installed  installed
	deviations *[]deviation
	deferred   bool

	// crdDeviations are the CRDs that another program has changed.
	crdDeviations []deviation

	// identified is set if no other resource has installed the provider.
	identified bool

	// selection is the version that the range of the resource resolves to.
	selection autoupgrade.Selection

	// answers are the results of the actions that the change has taken, and passed is set once all checks were.
	answers decide.Answers
	passed  bool

	// What the change finds out: the plan and its basis, the goal for the release, and what follows for it.
	// inputsProblem is why inputs could not be used that are not needed for what is installed.
	plan          plan.Plan
	basis         state.Basis
	inputsProblem report.Result
	goal          goal
	release       decide.Release

	// coreLater is set if core is not ready and the CRDs may be applied nevertheless. crds are the changes of CRDs, and
	// crdsChecked describes those that were checked.
	coreLater   bool
	crds        *crds.Plan
	crdsChecked string

	// prepared is the installation or upgrade, once nothing but to apply it is left to do. applied is set once a
	// revision was created, and failure is why that has failed.
	prepared *release.Prepared
	applied  bool
	failure  error

	// refusal is why a failed revision was not rolled back although it should have been.
	refusal string

	// source is what is known of the provider's source, and migration how far objects are rewritten.
	source      report.Source
	migration   report.Migration
	uninstalled bool
}

// installed is the newest revision of the release.
type installed struct {
	history  state.History
	revision state.Revision
	// record is the content of the revision; nil if there is none or it cannot be read.
	record *release.Record
	// health of the record's objects; nil until it was read.
	health   *health.Report
	replicas replicas
	// waiting are the objects of a staged revision that wait for others, and removing is set while all
	// that is left to do is to wait for deletions.
	waiting  []waves.Held
	removing bool
}

// healthy reports whether the objects of the revision are known to be healthy, and complete.
func (i *installed) healthy() bool { return i.health != nil && i.health.Healthy() && !i.isStaged() }

func newRun(r *Reconciler, provider v1alpha2.Provider, target *clusters.Target) *run {
	spec := plan.ReleaseSpec(provider.GetSpec())
	status := provider.GetStatus()

	retryInterval := ptr.Deref(spec.RetryInterval, metav1.Duration{})

	run := &run{
		Reconciler: r,
		provider:   provider,
		target:     target,
		memory:     r.memoryOf(provider),
		began:      time.Now(),
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
		run.arrived = run.memory.arrival(provider.GetGeneration(), run.began)
		run.memory.unannounced = run.memory.unannounced || run.policy.SpecChanged
	}

	return run
}

// reconcile is the whole reconcile of a resource that is neither suspended nor deleted.
func (r *run) reconcile(ctx context.Context) report.Summary {
	if result := r.observeInstalled(ctx); result.Ends() {
		return report.Summary{Result: result}
	}

	care := r.care(ctx)
	change := r.change(ctx)

	if change.Outcome == report.Repeated {
		return report.Summary{Result: change}
	}

	// The change leaves another newest revision behind, or did not come to replace the one that
	// care was deferred for.
	if r.applied || r.deferred {
		if result := r.observe(ctx); result.Ends() {
			return report.Summary{Result: result}
		}

		r.policy.SpecChanged = false
		r.policy.Requested = false
		r.policy.Refused, r.refusal = nil, ""
		care = r.care(ctx)

		if r.release.Decision.Action != "" {
			r.assess()
		}
	}

	if !r.changing().AppliedCRDs() {
		care = report.First(care, r.careForCRDs(ctx))
	}

	r.lookUpgrades(ctx)

	ended := report.Summarize(r.input(), care, change)
	if ended.Outcome == report.Ready {
		ended.Result = r.migrateCRDs(ctx, ended.Result)
	}

	return ended
}

// care keeps what is installed in the state that its newest revision describes. Problems with drift and with what
// could not be deleted do not keep the other steps from being taken.
func (r *run) care(ctx context.Context) report.Result {
	r.done, r.allowed, r.advanced = nil, 0, false

	var drift, left, ended report.Result

	for r.installed.record != nil && !ended.Ends() {
		seen := r.caring()
		step := r.decided(seen, decide.Care(seen))
		r.done = append(r.done, step.Action)

		switch step.Action {
		case decide.Nothing:
			r.wakeAt(step.Until)
			r.comeBack()

			return report.First(drift, left)
		case decide.Prune:
			left = r.prune(ctx)
		case decide.Compare:
			drift = r.correctDrift(ctx)
		case decide.CompareLost:
			drift = r.correctDrift(ctx)
			r.repeat(decide.CheckHealth)
		default:
			ended = r.take(ctx, step)
		}
	}

	return report.First(drift, ended, left)
}

// decided tells what is decided, and returns the step.
func (r *run) decided(seen any, step decide.Step) decide.Step {
	if r.Decided != nil {
		r.Decided(r.provider, decide.Decision{Seen: seen, Step: step})
	}

	return step
}

// take takes a step of care.
func (r *run) take(ctx context.Context, step decide.Step) report.Result {
	switch step.Action {
	case decide.CheckHealth:
		return r.checkHealth(ctx)
	case decide.MarkFinished:
		return r.markFinished(ctx)
	case decide.Advance:
		return r.advance(ctx)
	case decide.MarkHealthy:
		return r.markHealthy(ctx)
	case decide.MarkFailed:
		return r.markFailed(ctx, step)
	case decide.CheckTarget:
		return r.checkReturn(ctx, step.Target)
	case decide.Rollback:
		return r.rollBack(ctx, step.Target)
	default:
		r.deferred = true
		return report.Result{}
	}
}

// caring returns what care goes by.
func (r *run) caring() decide.Installed {
	seen := r.seen()

	return decide.Installed{
		History:  seen.History,
		Observed: r.target.Releases.Determine(seen.History, decide.AttemptedDigest(seen.History)),
		Policy:   r.policy,
		Health:   seen.Health,
		Drift:    r.looksForDrift(),
		Lost:     r.lostMeanwhile(),
		Done:     r.done,
		Allowed:  r.allowed,
		Waiting: decide.Waiting{
			Staged: r.installed.isStaged(), ForManager: r.lacksManager(), ForDeletions: r.installed.removing,
		},
	}
}

// looksForDrift reports whether objects are compared with the newest revision. Before a revision is deployed it is
// not settled what they should be.
func (r *run) looksForDrift() bool {
	deployed := r.installed.revision.Status == state.StatusDeployed
	return deployed && driftPolicy(r.provider.GetSpec()) != v1alpha2.DriftOff
}

// lookAgain observes the release after a step has changed it. What was done with the revision is not done again, and
// of rollbacks there is one in a reconcile.
func (r *run) lookAgain(ctx context.Context) report.Result {
	before := r.installed.revision.Number
	result := r.observe(ctx)

	if r.installed.revision.Number != before {
		r.done = slices.DeleteFunc(r.done, func(action decide.Action) bool { return action != decide.Rollback })
	}

	r.repeat(decide.Compare, decide.CheckHealth)

	return result
}

// repeat lets care take actions again.
func (r *run) repeat(actions ...decide.Action) {
	r.done = slices.DeleteFunc(r.done, func(action decide.Action) bool { return slices.Contains(actions, action) })
}

// wakeAt brings the provider back at a time of the API server; not if that is zero.
func (r *run) wakeAt(at time.Time) {
	if !at.IsZero() {
		r.Wake(v1alpha2.Label(r.provider), r.provider.GetNamespace(), at.Sub(r.policy.Now))
	}
}

// change brings the release to what the spec asks for. Its checks are made only if there is something to apply.
func (r *run) change(ctx context.Context) report.Result {
	r.answers = decide.Answers{}

	if revision := plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo; revision != nil {
		r.goal = r.rollbackGoal(int(*revision))
	}

	spent := map[metrics.Step]time.Duration{}
	defer func() {
		for step, took := range spent {
			r.Metrics.ObserveStep(r.Type, step, took)
		}
	}()

	for {
		known := r.changing()
		r.passed = known.Passed()

		switch step := r.decided(known, decide.Change(known)); step.Action {
		case decide.End:
			return step.Result
		case decide.Block:
			r.block(step.Result.Message)
		default:
			began := time.Now()
			r.answers[step.Action] = changeActions[step.Action](r, ctx)

			if timed, is := timedActions[step.Action]; is {
				spent[timed] += time.Since(began)
			}
		}
	}
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

// changing returns what the change goes by.
func (r *run) changing() decide.Changing {
	seen := r.seen()
	known := decide.Changing{
		Answers:     r.answers,
		Core:        r.Type == v1alpha2.CoreProviderType,
		Returns:     plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo != nil,
		SpecChanged: r.policy.SpecChanged,
		Arrived:     r.arrived,
		First:       !r.policy.Existed,
		Account:     r.target != nil && r.target.Account != "",
		Observed:    seen.Observed,
		Unreadable:  failed(r.unobserved, applying),
		Foreign:     failed(r.foreign, applying),
		History:     seen.History,
		Installed: decide.Content{
			Known: seen.Record.Readable, Version: seen.Record.AppVersion, Contract: seen.Record.Contract,
		},
		Starts:    r.selection.Starts(),
		Problem:   r.inputsProblem,
		Release:   r.release,
		CoreLater: r.coreLater,
		Applied:   r.applied,
		Now:       time.Now(),
	}

	// A rollback has no plan.
	if r.goal.apply != nil {
		known.Planned.Known = true

		if chart := r.plan.Chart; chart != nil {
			known.Planned.Version, known.Planned.Contract = chart.Version(), chart.Contract()
		}
	}

	if r.crds != nil {
		_, updated := r.crds.Changes()
		known.CRDs = decide.CRDs{Change: r.crds.HasChanges(), Update: len(updated) > 0}
	}

	return known
}

// changeActions take the actions of a change.
var changeActions = map[decide.Action]func(*run, context.Context) report.Result{
	decide.Identify:          (*run).identify,
	decide.Select:            (*run).selectVersion,
	decide.Plan:              (*run).makePlan,
	decide.CheckSelection:    (*run).checkSelection,
	decide.Observe:           (*run).observe,
	decide.CompareRelease:    (*run).compareRelease,
	decide.MarkRequest:       (*run).markHandled,
	decide.CheckRevision:     (*run).checkRevision,
	decide.CheckRequirements: (*run).checkRequirements,
	decide.CheckCore:         (*run).checkCore,
	decide.CheckTurn:         (*run).checkTurn,
	decide.CheckPermissions:  (*run).checkPermissions,
	decide.Claim:             (*run).claim,
	decide.PlanCRDs:          (*run).planChange,
	decide.MigrateObjects:    (*run).migrateChange,
	decide.CheckCRDs:         (*run).checkChange,
	decide.DryRun:            (*run).dryRun,
	decide.ApplyCRDs:         (*run).applyChange,
	decide.CorrectCRDs:       (*run).correctChange,
	decide.ConfirmTurn:       (*run).checkTurn,
	decide.Announce:          (*run).announceUpgrade,
	decide.Apply:             (*run).apply,
	decide.AwaitCRDs:         (*run).awaitCRDs,
}
