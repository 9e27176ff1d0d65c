package provider

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// step is one step of a change.
type step struct {
	name   string
	needed func(*run) bool
	take   func(*run, context.Context) error
	// part is what the time counts towards; empty for nothing.
	part metrics.Step
}

// steps are those of a change, once it is known what follows for the release. Until the CRDs are applied, nothing that
// is installed changes. The first one that ends the change counts.
var steps = []step{
	{"the provider may return to the revision", (*run).returnsNow, (*run).checkRevision, ""},
	{"a version that was given up is not tried again", (*run).triesGivenUp, (*run).refuseGivenUp, ""},
	{"contracts fit, and variables and kinds exist", (*run).upgrades, (*run).checkRequirements, metrics.StepPreflight},
	{"core is ready before what needs it", (*run).needsCore, (*run).checkCore, metrics.StepPreflight},
	{"providers change one after the other", (*run).changesVersion, (*run).checkTurn, ""},
	{"no other program has installed the provider", (*run).installs, (*run).checkInstalled, ""},
	{"changes of CRDs break nothing", (*run).plans, (*run).prepareChange, metrics.StepCRDs},
	{"the API server accepts all objects", (*run).triesFirst, (*run).dryRun, metrics.StepCRDs},
	{"core that changes at the same time comes first", (*run).changesVersion, (*run).letCoreBegin, ""},
	{"a change is announced before it begins", (*run).begins, (*run).announceChange, ""},
	{"CRDs are applied before the release", (*run).plans, (*run).applyCRDs, metrics.StepCRDs},
	{"nothing prevents the release", (*run).plans, (*run).pass, ""},
	{"the release is applied", (*run).applies, (*run).apply, metrics.StepRelease},
	{"the CRDs are served", (*run).plans, (*run).awaitCRDs, ""},
}

// held reports whether what another program did to the release stays.
func (c *change) held() bool { return c.release.Decision.Action == state.Hold }

// makeChange changes what is installed to what the resource asks for.
func (r *run) makeChange(ctx context.Context) error {
	if err := r.inTime(ctx, r.identify); err != nil {
		return err
	}

	if err := r.checkFound(); err != nil {
		return err
	}

	// Until the version can be planned, later reconciles would respect that the release was uninstalled.
	if r.asksForUninstalled() {
		r.provider.GetStatus().Release = nil
	}

	if revision := r.rollbackTo(); revision != 0 {
		r.change.goal = r.rollbackGoal(revision)
		return r.reachGoal(ctx)
	}

	if err := r.awaitCore(ctx); err != nil {
		return err
	}

	if err := r.selectVersion(ctx); err != nil {
		return err
	}

	err := r.installVersion(ctx)

	// That the operator cannot upgrade the provider by itself makes that no less ready.
	for r.preventsUpgrade(err) {
		r.block(cmp.Or(resultOf(err).text(), r.change.problem.text()))
		err = r.installVersion(ctx)
	}

	return err
}

// asksForUninstalled reports whether a user has asked for something since another program has uninstalled the release.
func (r *run) asksForUninstalled() bool {
	history := r.installed.History
	gone := r.installed.observed && len(history.Revisions) == 0 && !history.Lost

	return gone && (r.policy.SpecChanged || r.policy.Requested)
}

// preventsUpgrade reports whether an automatic upgrade that was about to start was stopped before anything was changed.
func (r *run) preventsUpgrade(err error) bool {
	result := resultOf(err)
	stopped := result.Outcome == Stalled || result.Condition == v1alpha2.CRDsSafeCondition || r.change.problem.Ends()

	return r.selection.Starts() && stopped && !r.done.applied && !r.change.crds.applied
}

// installVersion plans the version that the resource asks for, and installs it.
func (r *run) installVersion(ctx context.Context) error {
	planned := r.inTime(ctx, r.makePlan)

	// Also a version that cannot be installed: a user who corrects that gets no other one meanwhile.
	if err := r.writeVersion(ctx); err != nil {
		return err
	}

	if planned != nil {
		return planned
	}

	if err := r.checkSelected(); err != nil {
		return err
	}

	return r.reachGoal(ctx)
}

// checkSelected stops an automatic upgrade for which the source has something else now than it has offered.
func (r *run) checkSelected() error {
	if !r.selection.Starts() || r.change.problem.Ends() {
		return nil
	}

	found, contract := r.change.plan.Version, r.installed.contract()
	if found == r.selection.Version && r.change.goal.contract == contract {
		return nil
	}

	return problem.Refuse(v1alpha2.CAPIVersionIncompatibilityReason,
		"the source has offered %s with the contract %s of the installed version, and now has %s with the contract %s",
		r.selection.Version, contract, found, r.change.goal.contract)
}

// reachGoal brings the release to its goal.
func (r *run) reachGoal(ctx context.Context) error {
	if !r.installed.observed {
		if err := r.observe(ctx); err != nil {
			return err
		}
	}

	if r.installed.foreign != nil {
		return r.installed.foreign
	}

	if err := r.compareRelease(ctx); err != nil || !r.applies() && r.change.release.Keeps() {
		return err
	}

	for _, step := range steps {
		if !step.needed(r) {
			continue
		}

		if err := r.take(ctx, step); err != nil {
			return err
		}
	}

	return nil
}

// take takes a step.
func (r *run) take(ctx context.Context, step step) error {
	ctrl.LoggerFrom(ctx).V(1).Info("Changing the provider", "step", step.name)

	began := time.Now()
	err := r.inTime(ctx, func(ctx context.Context) error { return step.take(r, ctx) })

	if step.part != "" {
		r.spent[step.part] += time.Since(began)
	}

	return err
}

// plans reports whether the resource asks for a version, and not for an earlier revision.
func (r *run) plans() bool { return r.change.goal.action != metrics.ActionRollback }

// applies reports whether there is something to apply now.
func (r *run) applies() bool { return r.change.release.Decision.Action == state.Apply }

func (r *run) returnsNow() bool { return !r.plans() && r.applies() }

func (r *run) upgrades() bool { return r.plans() && r.applies() }

func (r *run) installs() bool { return r.upgrades() && !r.policy.Existed }

// needsCore reports whether core must be healthy before the plan is applied: for a first installation, and for another
// contract.
func (r *run) needsCore() bool {
	if !r.upgrades() {
		return false
	}

	if !slices.ContainsFunc(r.installed.History.Revisions, state.Revision.Confirmed) {
		return true
	}

	contract := r.installed.contract()

	return contract != "" && contract != r.change.goal.contract
}

// changesVersion reports whether another version than the installed one is applied.
func (r *run) changesVersion() bool {
	record := r.installed.Record
	return r.upgrades() && (record == nil || record.AppVersion != r.change.goal.version)
}

// triesFirst reports whether the release is tried before its CRDs are applied, so that nothing is touched if it would
// be refused.
func (r *run) triesFirst() bool { return r.change.crds.differ && r.upgrades() }

// begins reports whether something is written now that other resources must know of.
func (r *run) begins() bool {
	return r.installs() || r.changesVersion() || r.upgrades() && r.selection.Starts()
}

// settleTime is how long the change of a provider waits for one of core that was made together with it, counted from
// when the resource was seen. It usually takes longer to get a new version from its source.
const settleTime = 500 * time.Millisecond

// letCoreBegin waits until a change of core that was made together with the provider's is known. The step after it
// checks that core comes first.
func (r *run) letCoreBegin(ctx context.Context) error {
	follows := r.Type != v1alpha2.CoreProviderType && r.policy.SpecChanged && r.installed.Record != nil
	if !follows {
		return nil
	}

	select {
	case <-time.After(time.Until(r.arrived.Add(settleTime))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass notes that nothing prevents the release from being what the resource asks for.
func (r *run) pass(context.Context) error {
	r.change.passed = r.applies() || r.change.release.State.State == state.InSync

	return nil
}

// makePlan plans what the resource asks for, and stores a chart that is new.
func (r *run) makePlan(ctx context.Context) error {
	r.change.begun = true

	planned, err := r.plan(ctx)
	r.change.plan = planned

	if planned.Version != "" {
		r.provider.GetStatus().DesiredVersion = planned.Version
	}

	if planned.Chart != nil {
		if err := r.saveChart(ctx); err != nil {
			return r.planFailed(resultOf(err))
		}
	}

	if err != nil {
		return r.planFailed(resultOr(err, v1alpha2.ComponentsFetchErrorReason))
	}

	r.provider.GetStatus().MissingVariables = planned.MissingVariables
	r.provider.GetStatus().Ignored = shownIgnored(planned.Warnings.Ignored)

	if r.memory.unannounced {
		r.memory.unannounced = false
		r.emit(r.provider, ignored(planned.Warnings.Ignored))
		r.emit(r.provider, unpublished(planned.Warnings.Flags))
	}

	return r.setGoal()
}

// setGoal sets the goal that the plan describes.
func (r *run) setGoal() error {
	digest, err := r.change.plan.Release.Digest()
	if err != nil {
		return err
	}

	r.change.goal = goal{
		version:  r.change.plan.Chart.Version(),
		contract: r.change.plan.Chart.Contract(),
		digest:   digest,
		action:   metrics.ActionUpgrade,
		apply:    r.applyPlan,
	}

	return nil
}

// saveChart stores the chart of the plan.
func (r *run) saveChart(ctx context.Context) error {
	if err := r.Planner.Charts.Save(ctx, r.provider, r.change.plan.Chart); err != nil {
		return err
	}

	if outdated := r.change.plan.Chart.Outdated; outdated != nil {
		r.change.problem = resultOr(outdated, v1alpha2.ComponentsFetchErrorReason)
		r.emit(r.provider, sourceUnavailable(r.change.plan.Chart.Digest, object.Text(outdated)))
	}

	return nil
}

// dryRun prepares the installation or upgrade before its CRDs are applied, so that nothing is touched if a patch
// matches nothing, an object belongs to another release, or the API server would refuse one.
func (r *run) dryRun(ctx context.Context) error {
	var err error

	r.change.prepared, err = r.preparePlan(ctx, r.change.release.State, true)

	return err
}

// preparePlan prepares the installation or upgrade, which changes nothing: objects that the account must not even read
// would be refused as well.
func (r *run) preparePlan(
	ctx context.Context, observed state.Observed, crdsFollow bool,
) (*release.Prepared, error) {
	r.change.plan.Release.Request = r.asked()

	if err := r.findMade(ctx); err != nil {
		return nil, err
	}

	memory, err := r.knownWithKinds(ctx)
	if err != nil {
		return nil, err
	}

	// What another program has installed is replaced.
	if record := r.installed.Record; record != nil && release.Adopts(r.provider) && memory.Last == 0 {
		memory.Inventory = object.Union(memory.Inventory, record.Keys())
	}

	memory.Verified = r.verifiedObjects()

	return r.target.Releases.Prepare(ctx, r.change.plan.Release, memory, observed, crdsFollow)
}

// verifiedObjects returns the objects that need not be tried if they do not change: none if a user asks to apply them
// again, or an account must be able to.
func (r *run) verifiedObjects() []object.Snapshot {
	if !r.installed.isOwn() || r.policy.Requested || r.provider.GetSpec().ServiceAccountName != "" {
		return nil
	}

	return r.target.Health.Verified(r.installed.expectedObjects())
}

// applyPlan installs or upgrades the release. Its namespace gets the labels and annotations of the
// provider's Namespace, pod security levels among them.
func (r *run) applyPlan(ctx context.Context, observed state.Observed) (_ release.Result, err error) {
	if r.change.prepared == nil {
		r.change.prepared, err = r.preparePlan(ctx, observed, false)
		if err != nil {
			return release.Result{}, err
		}
	}

	// What took long to prepare is applied, however little time is left.
	unlimited := context.WithoutCancel(ctx)

	labels, annotations, err := chartgen.Namespace(r.change.plan.Release.Chart, r.change.plan.Release.Values)
	if err != nil {
		return release.Result{}, err
	}

	if err := r.target.MarkNamespace(unlimited, r.change.plan.Release.Release.Namespace, labels, annotations); err != nil {
		return release.Result{}, err
	}

	adopted, err := takeover.Version(unlimited, r.target.APIReader, r.provider, r.change.prepared.Adopts())
	if err != nil {
		return release.Result{}, err
	}

	return r.change.prepared.Apply(ctx, adopted)
}

// compareRelease compares the release with the goal, and returns what stops a change.
func (r *run) compareRelease(ctx context.Context) error {
	r.installed.History.Lost = r.recordsLost(ctx)
	r.assess()

	found := r.change.release
	if r.change.plan.Chart != nil && !found.Keeps() {
		status := r.provider.GetStatus()
		status.Chart = r.change.plan.Chart.Status(status.Chart)
	}

	if r.isHandled() {
		r.markHandled()
	}

	switch {
	case r.change.problem.Ends() && r.change.goal.apply == nil && r.applies():
		return endWith(r.change.problem)
	case found.State.State == state.Locked:
		return waitFor(v1alpha2.ProgressingReason, found.State.Message, found.State.Until)
	case found.Decision.HoldsUninstalled(r.installed.History):
		return endWith(r.uninstalledByOthers())
	}

	return nil
}

// known returns what the resource knows of its release, except for the kinds that the release defines.
func (r *run) known() state.Memory {
	return state.Memory{
		Revisions: r.installed.History.Revisions,
		Last:      state.Last(r.provider.GetStatus()),
		Inventory: r.inventory(),
		Owner:     r.self,
		Announce:  r.announce,
	}
}

// knownWithKinds is known with the kinds that the release defines, which cost requests in another cluster.
func (r *run) knownWithKinds(ctx context.Context) (_ state.Memory, err error) {
	memory := r.known()
	memory.Kinds, err = r.ownKinds(ctx)

	return memory, err
}

// announce enters in the status what is about to be written of a revision: a record whose resource does not know of it
// proves nothing, also if the operator stops before the end of this run. The objects are those that the release may
// have from then on; nil if these are as before.
func (r *run) announce(ctx context.Context, revision state.Revision, objects []object.Key) error {
	if err := checkStopping(ctx); err != nil && revision.Status.Pending() {
		return err
	}

	return r.record(ctx, func(status *v1alpha2.ProviderStatus) {
		state.Enter(status, revision)

		if objects != nil {
			status.Objects = object.Inventory(objects)
		}
	})
}

// noteResult notes which objects the release has after an action, and how many were adopted by the revision.
func (r *run) noteResult(result release.Result) {
	status := r.provider.GetStatus()

	if result.Inventory != nil {
		status.Objects = object.Inventory(result.Inventory)
	}

	if len(result.Adopted()) > 0 {
		state.Adopt(status, result.Revision, len(result.Adopted()))
	}
}

// apply takes the action that reaches the goal. Whether the action succeeded is read from the history
// afterwards.
func (r *run) apply(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithValues("release", r.installed.History.Release.Name, "version", r.change.goal.version)
	log.Info("Applying the release", "state", r.change.release.State.State, "found", r.change.release.State.Message)

	action := r.change.goal.action
	if r.change.release.State.State == state.Absent {
		action = metrics.ActionInstall

		r.provider.GetStatus().Release = nil
	}

	result, err := r.change.goal.apply(ctx, r.change.release.State)
	r.noteResult(result)
	r.target.Health.MarkVerified(result.Applied())
	r.emit(r.provider, adopted(result.Adopted()))
	r.emit(r.provider, rewritten(result.Results))

	if result.Revision != 0 {
		log.Info("Applied the release", "revision", result.Revision, "status", result.Status)
	}

	r.done.applied = err == nil || result.Revision != 0

	r.Metrics.CountReleaseAction(r.provider, action, err)

	if planned := r.change.crds.plan; r.done.applied && planned != nil {
		r.emit(r.provider, orphanedCRDs(planned.Version(), planned.Dropped(), ""))
	}

	if errors.As(err, new(*release.UninstalledError)) {
		r.policy.Existed = true
		r.noteExisted()

		return nil
	}

	if leavesRevision(result, err) {
		r.done.failure = err
		return nil
	}

	if unknown := new(apply.UnknownKindError); errors.As(err, &unknown) {
		return first(r.awaitCRDs(ctx), err)
	}

	return err
}

// noteExisted notes that the release existed, although another program has uninstalled it while it was first installed.
func (r *run) noteExisted() {
	key := plan.ReleaseKey(r.provider)
	r.provider.GetStatus().Release = &v1alpha2.ReleaseStatus{
		Name: key.Name, Namespace: key.Namespace, ClusterUID: string(r.target.ClusterUID()),
	}
}

// leavesRevision reports whether a failed action has left a failed revision in the history, from which
// the next action follows.
func leavesRevision(result release.Result, err error) bool {
	var (
		rejected    *apply.RejectedError
		unavailable *apply.UnavailableError
		remove      *apply.RemoveError
	)

	return result.Revision != 0 &&
		(errors.As(err, &rejected) || errors.As(err, &unavailable) || errors.As(err, &remove))
}
