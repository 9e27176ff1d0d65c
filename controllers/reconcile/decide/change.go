package decide

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// The actions of a change, in the order of its rows.
const (
	// Identify checks that no other resource has installed the provider.
	Identify Action = "Identify"
	// Select selects the version that a range resolves to.
	Select Action = "Select"
	// Plan plans the release of that version.
	Plan Action = "Plan"
	// PinVersion writes the version that was found for an empty spec.version into it.
	PinVersion Action = "PinVersion"
	// DisownVersion gives up the ownership of spec.version.
	DisownVersion Action = "DisownVersion"
	// Observe reads the release.
	Observe Action = "Observe"
	// CompareRelease compares the release with the plan: it finds Changing.Release.
	CompareRelease Action = "CompareRelease"
	// MarkRequest records that the newest revision fulfills what the resource asks for.
	MarkRequest Action = "MarkRequest"
	// CheckRevision checks that the provider may return to the revision of spec.release.rollbackTo.
	CheckRevision Action = "CheckRevision"
	// CheckRequirements checks contracts, variables and kinds that the cluster has to serve.
	CheckRequirements Action = "CheckRequirements"
	// CheckCore checks that core is ready.
	CheckCore Action = "CheckCore"
	// CheckTurn checks that no other provider has to change first.
	CheckTurn Action = "CheckTurn"
	// CheckInstalled checks that no other program has installed the provider.
	CheckInstalled Action = "CheckInstalled"
	// PlanCRDs compares the CRDs with those of the cluster: it finds Changing.CRDsDiffer.
	PlanCRDs Action = "PlanCRDs"
	// MigrateObjects rewrites objects that are stored in versions that the CRDs no longer have.
	MigrateObjects Action = "MigrateObjects"
	// CheckCRDs checks that the changes of the CRDs break nothing.
	CheckCRDs Action = "CheckCRDs"
	// DryRun tries the objects of the release.
	DryRun Action = "DryRun"
	// Announce makes the change known, if other resources still let it begin: resources that are changed together arrive
	// one after the other.
	Announce Action = "Announce"
	// ApplyCRDs applies the CRDs that change.
	ApplyCRDs Action = "ApplyCRDs"
	// CorrectCRDs corrects the CRDs that another program has changed.
	CorrectCRDs Action = "CorrectCRDs"
	// Apply installs, upgrades or rolls back the release.
	Apply Action = "Apply"
	// AwaitCRDs checks that the API server serves the CRDs.
	AwaitCRDs Action = "AwaitCRDs"
	// Block gives an automatic upgrade up because of a check that prevents it, and plans the installed version.
	Block Action = "Block"
	// End ends the change, with Step.Result.
	End Action = "End"
)

// settleTime is how soon after a provider core may change and still comes before it. It usually takes longer to get
// a new version from its source.
const settleTime = 500 * time.Millisecond

// Answers are the results of the actions that were taken. No action is taken twice, so no question is asked twice.
type Answers map[Action]report.Result

// Changing is what a change depends on: what is known of the resource and of its release, and the answers so far.
type Changing struct {
	Answers Answers
	// Core is set for the core provider.
	Core bool
	// Returns is set if spec.release.rollbackTo asks for a revision.
	Returns bool
	// SpecChanged is set if no reconcile has ended since the spec has changed, and Arrived is when that was seen first.
	SpecChanged bool
	Arrived     time.Time
	// First is set if the status knows of no installation.
	First bool

	// Observed is set if the release was read, and Foreign is why it belongs to something else; zero if it does not.
	Observed bool
	Foreign  report.Result
	History  state.History
	// Installed is the newest revision, if it can be read.
	Installed Content

	// Starts is set if an automatic upgrade starts, and Selected is the version that was selected for it.
	Starts   bool
	Selected string
	// Found is the version that was found for what the resource asks for; empty if its chart is not known. Unpinned is set
	// if spec.version is empty, and OwnsVersion if the operator has written it.
	Found                 string
	Unpinned, OwnsVersion bool
	// Planned is what is installed next, if it is known.
	Planned Content
	// Problem is why inputs could not be used; zero for none.
	Problem report.Result
	// Release is what follows for the release; zero before CompareRelease.
	Release Release

	// CoreLater is set if core is not ready, and the CRDs may be applied anyway.
	CoreLater bool
	// CRDsDiffer is set if CRDs are to be created or updated.
	CRDsDiffer bool
	// Applied is set if Apply has created a revision.
	Applied bool

	Now time.Time
}

// Content is the content of a revision.
type Content struct {
	Known bool
	// Version of the provider, and its contract with Cluster API.
	Version, Contract string
}

// changeRules are the rules of a change. The first one that decides counts.
var changeRules = []rule[Changing]{
	{"a cluster has each provider only once", ask(Identify, always)},
	{"a range selects a version", ask(Select, Changing.plans)},
	{"what the resource asks for is planned", look(Plan, Changing.plans)},
	{"an empty version becomes the one that was found", ask(PinVersion, Changing.pins)},
	{"a version belongs to the user", ask(DisownVersion, Changing.disowns)},
	{"without a plan nothing is changed", unplanned},
	{"an automatic upgrade is what was selected", reselect},
	{"the release is read", ask(Observe, Changing.unknown)},
	{"a release of another program stays", foreign},
	{"the release is compared with the plan", ask(CompareRelease, always)},
	{"a request that is fulfilled is recorded", ask(MarkRequest, Changing.fulfilled)},
	{"inputs that cannot be used stop a change", problem},
	{"an action on the release is awaited", locked},
	{"an uninstall by another program stays", uninstalled},
	{"a revision stays until the resource asks for another one", keep},
	{"the provider may return to the revision", ask(CheckRevision, Changing.returns)},
	{"contracts fit, and variables and kinds exist", ask(CheckRequirements, Changing.upgrades)},
	{"core is ready before what needs it", checkCore},
	{"core that changes at the same time comes first", settle},
	{"providers change one after the other", ask(CheckTurn, Changing.ChangesVersion)},
	{"no other program has installed the provider", ask(CheckInstalled, Changing.installs)},
	{"CRDs are compared with those of the cluster", ask(PlanCRDs, Changing.plans)},
	{"objects are rewritten before their version goes", ask(MigrateObjects, Changing.changesCRDs)},
	{"changes of CRDs break nothing", ask(CheckCRDs, Changing.changesCRDs)},
	{"the API server accepts all objects", ask(DryRun, Changing.triesBeforeCRDs)},
	{"a change is announced before it begins", ask(Announce, Changing.begins)},
	{"CRDs are applied before the release", ask(ApplyCRDs, Changing.changesCRDs)},
	{"CRDs that were changed are corrected", ask(CorrectCRDs, Changing.plans)},
	{"what needs core waits for it", coreFirst},
	{"the release is applied", ask(Apply, Changing.applies)},
	{"the CRDs are served", ask(AwaitCRDs, Changing.plans)},
}

// Change returns the next step of the change to what the resource asks for.
func Change(c Changing) Step {
	step, decides := first(changeRules, c)
	if !decides {
		step.Action = End
	}

	if step.Action == End && c.blocks(step.Result) {
		step.Action = Block
		step.Result = report.First(step.Result, c.Problem)
	}

	return step
}

// Passed reports whether nothing prevents the release from being what the resource asks for.
func (c Changing) Passed() bool {
	wanted := c.applies() || c.Release.State.State == state.InSync
	announced := !c.begins() || c.passed(Announce)

	return c.plans() && wanted && c.passed(CorrectCRDs) && announced && !c.CoreLater
}

// AppliedCRDs reports whether the CRDs are those of the plan.
func (c Changing) AppliedCRDs() bool { return c.passed(CorrectCRDs) }

func (c Changing) answers() Answers { return c.Answers }

func (c Changing) passed(action Action) bool {
	answer, answered := c.Answers[action]
	return answered && !answer.Ends()
}

func always(Changing) bool { return true }

func (c Changing) plans() bool { return !c.Returns }

// pins reports whether the version that was found is written into the spec, also if it cannot be installed: a user who
// corrects that gets no other version meanwhile.
func (c Changing) pins() bool { return c.plans() && c.Unpinned && c.Found != "" }

// disowns reports whether the operator owns a version that it has pinned, which would be a conflict for a user who
// applies another one with server-side apply.
func (c Changing) disowns() bool {
	return c.plans() && !c.Unpinned && c.OwnsVersion && c.Found != ""
}

func unplanned(c Changing) (Step, bool) { return end(c.Answers[Plan]) }

// reselect stops an automatic upgrade for which the source has something else now than it has offered.
func reselect(c Changing) (Step, bool) {
	selected, contract := c.Selected, c.Planned.Contract
	if !c.Starts || c.Problem.Ends() || c.Found == selected && contract == c.Installed.Contract {
		return Step{}, false
	}

	return end(report.Result{
		Outcome: report.Stalled, Condition: v1alpha2.PreflightCheckCondition,
		Reason: v1alpha2.CAPIVersionIncompatibilityReason,
		Message: fmt.Sprintf(
			"the source has offered %s with the contract %s of the installed version, and now has %s with the contract %s",
			selected, c.Installed.Contract, c.Found, contract),
	})
}

func (c Changing) unknown() bool { return !c.Observed }

func (c Changing) fulfilled() bool { return c.Release.Handled }

// applies reports whether there is something to apply now.
func (c Changing) applies() bool { return c.Release.Decision.Action == state.Apply }

func (c Changing) returns() bool { return c.Returns && c.applies() }

func (c Changing) upgrades() bool { return !c.Returns && c.applies() }

// needsCore reports whether core must be healthy before the plan is applied: for a first installation, and for another
// contract.
func (c Changing) needsCore() bool {
	if !c.upgrades() {
		return false
	}

	if !slices.ContainsFunc(c.History.Revisions, state.Revision.Confirmed) {
		return true
	}

	return c.Installed.Contract != "" && c.Installed.Contract != c.Planned.Contract
}

// ChangesVersion reports whether another version than the installed one is applied.
func (c Changing) ChangesVersion() bool {
	return c.upgrades() && (!c.Installed.Known || c.Installed.Version != c.Planned.Version)
}

func (c Changing) installs() bool { return c.upgrades() && c.First }

func (c Changing) changesCRDs() bool { return !c.Returns && c.CRDsDiffer }

// triesBeforeCRDs reports whether the release is tried before its CRDs are applied, so that nothing is touched if it
// would be refused.
func (c Changing) triesBeforeCRDs() bool { return c.changesCRDs() && c.upgrades() }

// begins reports whether something is written now that other resources must know of.
func (c Changing) begins() bool {
	writes := c.changesCRDs() || !c.CoreLater
	return writes && (c.installs() || c.ChangesVersion() || c.upgrades() && c.Starts)
}

func foreign(c Changing) (Step, bool) { return end(c.Foreign) }

func problem(c Changing) (Step, bool) {
	step, ends := end(c.Problem)
	return step, ends && !c.Planned.Known && c.applies()
}

func locked(c Changing) (Step, bool) {
	found := c.Release.State
	if found.State != state.Locked {
		return Step{}, false
	}

	return end(report.Wait(v1alpha2.ProgressingReason, found.Message, found.Until))
}

func uninstalled(c Changing) (Step, bool) {
	if !c.Release.Decision.HoldsUninstalled(c.History) {
		return Step{}, false
	}

	return end(report.UninstalledByOthers(c.History))
}

func keep(c Changing) (Step, bool) {
	return Step{Action: End}, !c.Returns && c.Release.Keeps() && !c.applies()
}

// checkCore lets the CRDs be applied if that is all that core prevents, see coreFirst.
func checkCore(c Changing) (Step, bool) {
	step, decides := ask(CheckCore, Changing.needsCore)(c)
	return step, decides && (step.Action == CheckCore || !c.CoreLater)
}

// settle ends a reconcile in which core would not have changed yet if it were changed together with the provider.
func settle(c Changing) (Step, bool) {
	until := c.Arrived.Add(settleTime)
	waits := !c.Core && c.SpecChanged && c.Installed.Known && c.ChangesVersion() && c.Now.Before(until)

	return Step{Action: End, Result: report.Result{Outcome: report.Repeated, At: until}}, waits
}

func coreFirst(c Changing) (Step, bool) {
	return Step{Action: End, Result: c.Answers[CheckCore]}, c.CoreLater
}

// blocks reports whether an automatic upgrade that was about to start is given up, because a check prevents it and
// nothing was changed: that the operator cannot upgrade it makes the provider no less ready.
func (c Changing) blocks(result report.Result) bool {
	stopped := result.Outcome == report.Stalled || c.Problem.Ends() && result.Outcome != report.Repeated
	return c.Starts && stopped && !c.Applied && !c.AppliedCRDs()
}

// Replan returns the answers that hold for the plan of another version.
func (a Answers) Replan() Answers {
	kept := maps.Clone(a)
	maps.DeleteFunc(kept, func(action Action, _ report.Result) bool { return action != Identify && action != Select })

	return kept
}
