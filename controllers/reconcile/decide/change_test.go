package decide

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var (
	began   = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	refused = report.Result{Outcome: report.Stalled, Message: "refused"}
	waits   = report.Result{Outcome: report.Waiting, Message: "waits"}
	inSync  = Release{Decision: state.Decision{Action: state.None}, State: state.Observed{State: state.InSync}}
)

// upgrade is what an upgrade depends on, of a provider with changed CRDs, before anything was asked.
func upgrade() Changing {
	return Changing{
		Answers:  Answers{},
		Observed: true,
		History: state.History{Revisions: []state.Revision{
			{Number: 1, Status: state.StatusDeployed, Known: state.AnyRecord()},
		}},
		Installed:  Content{Known: true, Version: "v1.0.0", Contract: "v1beta1"},
		Planned:    Content{Known: true, Version: "v1.1.0", Contract: "v1beta1"},
		Release:    Release{Decision: state.Decision{Action: state.Apply}, State: state.Observed{State: state.OutOfSync}},
		CRDsDiffer: true,
		Now:        began,
	}
}

// walk takes all steps of a change, and returns their actions and the last step. Actions without an answer pass.
func walk(c Changing, answers Answers) (actions []Action, last Step) {
	c.Answers = maps.Clone(c.Answers)

	for range 100 {
		last = Change(c)

		switch last.Action {
		case End:
			return actions, last
		case Block:
			c.Answers, c.Starts, c.Problem = c.Answers.Replan(), false, report.Result{}
		default:
			c.Answers[last.Action] = answers[last.Action]
			c.Observed = c.Observed || last.Action == Observe && !answers[Observe].Ends()
		}

		actions = append(actions, last.Action)
	}

	return actions, Step{}
}

// TestOrderOfChange: what is asked and written, and in which order.
func TestOrderOfChange(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Changing)
		expected []Action
	}{
		"an upgrade": {
			func(*Changing) {},
			[]Action{
				Identify, Select, Plan, CompareRelease, CheckRequirements, CheckTurn, PlanCRDs, MigrateObjects, CheckCRDs, DryRun,
				Announce, ApplyCRDs, CorrectCRDs, Apply, AwaitCRDs,
			},
		},
		"an upgrade to the same version": {
			func(c *Changing) { c.Planned.Version, c.CRDsDiffer = c.Installed.Version, false },
			[]Action{
				Identify, Select, Plan, CompareRelease, CheckRequirements, PlanCRDs, CorrectCRDs, Apply, AwaitCRDs,
			},
		},
		"an upgrade to another contract": {
			func(c *Changing) { c.Planned.Contract, c.CRDsDiffer = "v1beta2", false },
			[]Action{
				Identify, Select, Plan, CompareRelease, CheckRequirements, CheckCore, CheckTurn, PlanCRDs, Announce,
				CorrectCRDs, Apply, AwaitCRDs,
			},
		},
		"an automatic upgrade": {
			func(c *Changing) { starts(c); c.CRDsDiffer = false },
			[]Action{
				Identify, Select, Plan, CompareRelease, CheckRequirements, CheckTurn, PlanCRDs, Announce,
				CorrectCRDs, Apply, AwaitCRDs,
			},
		},
		"a first installation": {
			func(c *Changing) {
				*c = Changing{
					First: true, Planned: c.Planned, Release: c.Release, CRDsDiffer: true, Answers: Answers{},
				}
			},
			[]Action{
				Identify, Select, Plan, Observe, CompareRelease, CheckRequirements, CheckCore, CheckTurn, CheckInstalled, PlanCRDs,
				MigrateObjects, CheckCRDs, DryRun, Announce, ApplyCRDs, CorrectCRDs, Apply, AwaitCRDs,
			},
		},
		"nothing to apply": {
			func(c *Changing) {
				c.Release = inSync
				c.CRDsDiffer = false
			},
			[]Action{Identify, Select, Plan, CompareRelease, PlanCRDs, CorrectCRDs, AwaitCRDs},
		},
		"a request that is fulfilled": {
			func(c *Changing) {
				c.Release = Release{Decision: state.Decision{Action: state.None}, Handled: true, Pinned: true}
			},
			[]Action{Identify, Select, Plan, CompareRelease, MarkRequest},
		},
		"a rollback that a user asks for": {
			func(c *Changing) { c.Returns = true },
			[]Action{Identify, CompareRelease, CheckRevision, Apply},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			known := upgrade()
			c.change(&known)

			actions, last := walk(known, nil)
			g.Expect(actions).To(Equal(c.expected))
			g.Expect(last.Result).To(BeZero())
		})
	}
}

// TestChangeEnds: each rule that ends a change, and with what.
func TestChangeEnds(t *testing.T) {
	arrived := began.Add(-100 * time.Millisecond)

	var shown []string

	for row, c := range map[string]struct {
		change  func(*Changing)
		answers Answers
		expect  report.Result
		after   Action
	}{
		"a cluster has each provider only once": {nil, Answers{Identify: refused}, refused, Identify},
		"a range selects a version":             {nil, Answers{Select: refused}, refused, Select},
		"without a plan nothing is changed":     {unpinned, Answers{Plan: refused}, refused, PinVersion},
		"an empty version becomes the one that was found": {
			unpinned, Answers{PinVersion: waits, Plan: refused}, waits, PinVersion,
		},
		"a version belongs to the user": {
			func(c *Changing) { c.Found, c.OwnsVersion = "v1.1.0", true }, Answers{DisownVersion: waits}, waits, DisownVersion,
		},
		"the release is read": {
			func(c *Changing) { c.Observed = false }, Answers{Observe: waits}, waits, Observe,
		},
		"a release of another program stays": {func(c *Changing) { c.Foreign = refused }, nil, refused, Plan},
		"a request that is fulfilled is recorded": {
			func(c *Changing) { c.Release.Handled = true }, Answers{MarkRequest: waits}, waits, MarkRequest,
		},
		"inputs that cannot be used stop a change": {
			func(c *Changing) { c.Planned, c.Problem = Content{}, refused }, nil, refused, CompareRelease,
		},
		"an action on the release is awaited": {
			func(c *Changing) {
				c.Release.State = state.Observed{State: state.Locked, Message: "helm runs", Until: began}
			},
			nil, report.Wait(v1alpha2.ProgressingReason, "helm runs", began), CompareRelease,
		},
		"a revision stays until the resource asks for another one": {
			func(c *Changing) { c.Release = Release{Pinned: true} }, nil, report.Result{}, CompareRelease,
		},
		"the provider may return to the revision": {
			func(c *Changing) { c.Returns = true }, Answers{CheckRevision: refused}, refused, CheckRevision,
		},
		"contracts fit, and variables and kinds exist": {nil, Answers{CheckRequirements: waits}, waits, CheckRequirements},
		"core is ready before what needs it": {
			func(c *Changing) { c.Planned.Contract = "v1beta2" }, Answers{CheckCore: waits}, waits, CheckCore,
		},
		"core that changes at the same time comes first": {
			func(c *Changing) { c.SpecChanged, c.Arrived = true, arrived }, nil,
			report.Result{Outcome: report.Repeated, At: arrived.Add(settleTime)}, CheckRequirements,
		},
		"providers change one after the other": {nil, Answers{CheckTurn: waits}, waits, CheckTurn},
		"no other program has installed the provider": {
			func(c *Changing) { c.First = true }, Answers{CheckInstalled: waits}, waits, CheckInstalled,
		},
		"a change is announced before it begins":          {nil, Answers{Announce: waits}, waits, Announce},
		"CRDs are compared with those of the cluster":     {nil, Answers{PlanCRDs: refused}, refused, PlanCRDs},
		"objects are rewritten before their version goes": {nil, Answers{MigrateObjects: waits}, waits, MigrateObjects},
		"changes of CRDs break nothing":                   {nil, Answers{CheckCRDs: refused}, refused, CheckCRDs},
		"the API server accepts all objects":              {nil, Answers{DryRun: refused}, refused, DryRun},
		"CRDs are applied before the release":             {nil, Answers{ApplyCRDs: waits}, waits, ApplyCRDs},
		"CRDs that were changed are corrected":            {nil, Answers{CorrectCRDs: waits}, waits, CorrectCRDs},
		"the release is applied":                          {nil, Answers{Apply: waits}, waits, Apply},
		"the CRDs are served":                             {nil, Answers{AwaitCRDs: waits}, waits, AwaitCRDs},
		"the release is compared with the plan":           {nil, Answers{CompareRelease: waits}, waits, CompareRelease},
		"what needs core waits for it": {
			func(c *Changing) { c.Planned.Contract, c.CoreLater = "v1beta2", true },
			Answers{CheckCore: waits}, waits, CorrectCRDs,
		},
		"an uninstall by another program stays": {
			func(c *Changing) {
				c.History = state.History{}
				c.Release.Decision.Action = state.Hold
			},
			nil, report.UninstalledByOthers(state.History{}), CompareRelease,
		},
	} {
		t.Run(row, func(t *testing.T) {
			g := NewWithT(t)
			known := upgrade()

			if c.change != nil {
				c.change(&known)
			}

			actions, last := walk(known, c.answers)
			g.Expect(last).To(Equal(Step{Row: row, Action: End, Result: c.expect}))
			g.Expect(actions[len(actions)-1]).To(Equal(c.after))
		})

		shown = append(shown, row)
	}

	for _, row := range changeRules {
		switch row.name {
		case "what the resource asks for is planned": // another row ends the change
		case "an automatic upgrade is what was selected": // TestReselect
		default:
			NewWithT(t).Expect(shown).To(ContainElement(row.name))
		}
	}
}

// TestReselect: an automatic upgrade is given up if the source has something else than it has offered.
func TestReselect(t *testing.T) {
	const offered = "the source has offered v1.1.0 with the contract v1beta1 of the installed version, and now has "

	for name, c := range map[string]struct {
		change  func(*Changing)
		message string
	}{
		"what was offered":        {func(*Changing) {}, ""},
		"another version":         {func(c *Changing) { c.Found = "v1.2.0" }, "v1.2.0 with the contract v1beta1"},
		"another contract":        {func(c *Changing) { c.Planned.Contract = "v1beta2" }, "v1.1.0 with the contract v1beta2"},
		"what a user has changed": {func(c *Changing) { c.Starts, c.Found = false, "v1.2.0" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			known := upgrade()
			known.Answers = Answers{Identify: {}, Select: {}, Plan: {}}
			starts(&known)
			c.change(&known)

			step := Change(known)
			if c.message == "" {
				g.Expect(step.Action).To(Equal(CompareRelease))
				return
			}

			g.Expect(step).To(HaveField("Action", Block))
			g.Expect(step.Row).To(Equal("an automatic upgrade is what was selected"))
			g.Expect(step.Result.Message).To(Equal(offered + c.message))
			g.Expect(step.Result.Condition).To(Equal(v1alpha2.PreflightCheckCondition))
		})
	}
}

func starts(c *Changing) {
	c.Starts, c.Found, c.Selected = true, "v1.1.0", "v1.1.0"
}

func unpinned(c *Changing) { c.Found, c.Unpinned = "v1.1.0", true }

func problemOfInputs(c *Changing) {
	starts(c)
	c.Problem, c.Release = refused, Release{Pinned: true}
}

// TestNeedsCore: who waits for core.
func TestNeedsCore(t *testing.T) {
	planted := []state.Revision{{Number: 1, Status: state.StatusDeployed}}

	for name, c := range map[string]struct {
		change   func(*Changing)
		expected bool
	}{
		"a first installation": {func(c *Changing) { c.History, c.Installed = state.History{}, Content{} }, true},
		"a revision of others": {func(c *Changing) { c.History.Revisions = planted }, true},
		"the same contract":    {func(*Changing) {}, false},
		"another contract":     {func(c *Changing) { c.Planned.Contract = "v1beta2" }, true},
		"an unknown contract":  {func(c *Changing) { c.Installed.Contract = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := upgrade()
			c.change(&known)
			NewWithT(t).Expect(known.needsCore()).To(Equal(c.expected))
		})
	}
}

// TestSettle: who waits for core to arrive.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Changing)
		expected bool
	}{
		"changed just now":     {func(*Changing) {}, true},
		"core":                 {func(c *Changing) { c.Core = true }, false},
		"not changed":          {func(c *Changing) { c.SpecChanged = false }, false},
		"a first installation": {func(c *Changing) { c.Installed = Content{} }, false},
		"the same version":     {func(c *Changing) { c.Planned.Version = c.Installed.Version }, false},
		"changed a while ago":  {func(c *Changing) { c.Now = began.Add(settleTime) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := upgrade()
			known.SpecChanged, known.Arrived = true, began
			c.change(&known)

			_, decides := settle(known)
			NewWithT(t).Expect(decides).To(Equal(c.expected))
		})
	}
}

// TestTriesBeforeCRDs: what is tried before its CRDs are applied.
func TestTriesBeforeCRDs(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Changing)
		expected bool
	}{
		"other CRDs":                       {func(*Changing) {}, true},
		"other CRDs while core is awaited": {func(c *Changing) { c.CoreLater = true }, true},
		"the same CRDs":                    {func(c *Changing) { c.CRDsDiffer = false }, false},
		"CRDs only":                        {func(c *Changing) { c.Release.Decision.Action = state.None }, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := upgrade()
			c.change(&known)
			NewWithT(t).Expect(known.triesBeforeCRDs()).To(Equal(c.expected))
		})
	}
}

// TestPassed: when nothing prevents the release from being what the resource asks for.
func TestPassed(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Changing)
		expected bool
	}{
		"all checks":            {func(*Changing) {}, true},
		"in sync":               {func(c *Changing) { c.Release = inSync }, true},
		"out of sync, and held": {func(c *Changing) { c.Release.Decision.Action = state.Hold }, false},
		"CRDs were refused":     {func(c *Changing) { c.Answers[CorrectCRDs] = refused }, false},
		"CRDs were not reached": {func(c *Changing) { delete(c.Answers, CorrectCRDs) }, false},
		"another one first":     {func(c *Changing) { c.Answers[Announce] = waits }, false},
		"core is awaited":       {func(c *Changing) { c.CoreLater = true }, false},
		"a rollback":            {func(c *Changing) { c.Returns = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := upgrade()
			known.Answers = Answers{CorrectCRDs: {}, Announce: {}}
			c.change(&known)
			NewWithT(t).Expect(known.Passed()).To(Equal(c.expected))
		})
	}
}

// TestBlock: an automatic upgrade that a check prevents is given up, unless something was changed.
func TestBlock(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Changing)
		answers Answers
		blocked string
	}{
		"a check that a user must fix":   {starts, Answers{CheckRequirements: refused}, "refused"},
		"a check that may pass later":    {starts, Answers{CheckRequirements: waits}, ""},
		"a problem with inputs":          {problemOfInputs, nil, "refused"},
		"an upgrade that a user started": {func(*Changing) {}, Answers{CheckRequirements: refused}, ""},
		"after the CRDs":                 {starts, Answers{Apply: refused}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			known := upgrade()
			c.change(&known)

			if c.blocked == "" {
				actions, _ := walk(known, c.answers)
				g.Expect(actions).NotTo(ContainElement(Block))

				return
			}

			// The checks that stop the new version pass for the installed one.
			for {
				step := Change(known)
				if step.Action == Block {
					g.Expect(step.Result.Message).To(Equal(c.blocked))
					g.Expect(known.Answers.Replan()).To(HaveLen(2), "the selection holds, and that no other resource exists")

					return
				}

				g.Expect(step.Action).NotTo(Equal(End))
				known.Answers[step.Action] = c.answers[step.Action]
			}
		})
	}
}

// sameVersion returns a change of a plan that has the installed version.
func sameVersion(change func(*Changing)) func(*Changing) {
	return func(c *Changing) {
		c.Planned.Version = c.Installed.Version
		change(c)
	}
}

// TestBegins: what is announced, and when.
func TestBegins(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*Changing)
		expected bool
	}{
		"another version":                  {func(*Changing) {}, true},
		"the same version":                 {func(c *Changing) { c.Planned.Version = c.Installed.Version }, false},
		"an automatic upgrade":             {sameVersion(starts), true},
		"a first installation":             {sameVersion(func(c *Changing) { c.First = true }), true},
		"nothing to apply":                 {func(c *Changing) { c.Release = inSync }, false},
		"a rollback":                       {func(c *Changing) { c.Returns = true }, false},
		"CRDs only, while core is awaited": {func(c *Changing) { c.CoreLater = true }, true},
		"nothing, while core is awaited":   {func(c *Changing) { c.CoreLater, c.CRDsDiffer = true, false }, false},
		"without CRDs":                     {func(c *Changing) { c.CRDsDiffer = false }, true},
	} {
		t.Run(name, func(t *testing.T) {
			known := upgrade()
			c.change(&known)
			NewWithT(t).Expect(known.begins()).To(Equal(c.expected))
		})
	}
}

// TestNoQuestionIsAskedTwice walks random changes: no action is taken twice, but for those that plan another version
// after an automatic upgrade was given up, each change ends, and what is applied has passed all checks.
func TestNoQuestionIsAskedTwice(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	ended := map[string]int{}

	for range 100_000 {
		known, answers := randomChange(random)
		actions, last := walk(known, answers)
		g.Expect(last.Action).To(Equal(End), "%+v", known)

		ended[last.Row]++

		starts := known.Starts

		if blocked := slices.Index(actions, Block); blocked >= 0 {
			starts = false

			actions = append(slices.Clone(actions[:min(2, blocked)]), actions[blocked+1:]...)
		}

		for i, action := range actions {
			g.Expect(actions[:i]).NotTo(ContainElement(action))

			if action != Apply || known.Returns {
				continue
			}

			g.Expect(actions[:i]).To(ContainElements(Identify, Plan, CompareRelease, CheckRequirements, PlanCRDs, CorrectCRDs))
			g.Expect(slices.Contains(actions[:i], CheckInstalled)).To(Equal(known.First))
			g.Expect(slices.Contains(actions[:i], Announce)).To(Equal(known.First || known.ChangesVersion() || starts))
			g.Expect(slices.Contains(actions[:i], ApplyCRDs)).To(Equal(known.CRDsDiffer))
		}
	}

	g.Expect(len(ended)).To(BeNumerically(">", len(changeRules)-3), "most rules end one of them")
}

func randomChange(random *rand.Rand) (Changing, Answers) {
	some := func() bool { return random.IntN(3) == 0 }
	known := upgrade()

	for _, set := range []*bool{
		&known.Core, &known.Returns, &known.SpecChanged, &known.First, &known.CoreLater, &known.Unpinned, &known.OwnsVersion,
	} {
		*set = some()
	}

	// The selection is part of a plan.
	if some() && !known.Returns {
		starts(&known)
	}

	if some() {
		known.Found = "v1.1.0"
	}

	if some() {
		known.Observed = false
	}

	if some() {
		known.Installed, known.History = Content{}, state.History{}
	}

	if some() {
		known.Planned.Contract = "v1beta2"
	}

	if some() {
		known.Planned.Version = known.Installed.Version
	}

	if some() {
		known.Problem, known.Planned.Known = waits, some()
	}

	if random.IntN(9) == 0 {
		known.Foreign = refused
	}

	known.Arrived = began.Add(-time.Duration(random.IntN(1000)) * time.Millisecond)
	known.CRDsDiffer = some()

	if some() {
		decisions := []state.Action{state.None, state.Hold, state.Apply}
		states := []state.State{state.InSync, state.Locked, state.OutOfSync}
		known.Release = Release{
			Decision: state.Decision{Action: decisions[random.IntN(3)]}, State: state.Observed{State: states[random.IntN(3)]},
			Pinned: some(), Handled: some(),
		}
	}

	answers := Answers{}

	for _, row := range []Action{
		Identify, Select, Plan, PinVersion, DisownVersion, Observe, CompareRelease, MarkRequest, CheckRevision,
		CheckRequirements, CheckCore, CheckTurn, CheckInstalled, PlanCRDs, MigrateObjects, CheckCRDs, DryRun, Announce,
		ApplyCRDs, CorrectCRDs, Apply, AwaitCRDs,
	} {
		switch random.IntN(25) {
		case 0:
			answers[row] = waits
		case 1:
			answers[row] = refused
		}
	}

	return known, answers
}
