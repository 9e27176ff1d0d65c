package decide

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// TestRowsAreExplained checks that each row tells what it depends on, that the facts exist, and that a row which can
// end its list says who or what ends that.
func TestRowsAreExplained(t *testing.T) {
	g := NewWithT(t)
	names := explained(g, beginRules, beginFacts)
	names = append(names, explained(g, careRules, careFacts)...)
	names = append(names, explained(g, changeRules, changeFacts)...)
	names = append(names, explained(g, upgradeRules, upgradeFacts)...)
	names = append(names, explained(g, removeRules, removeFacts)...)

	for name := range explanations {
		g.Expect(names).To(ContainElement(name), "an explanation of no row")
	}
}

func explained[Seen any](g *WithT, rules []rule[Seen], facts map[string]fact[Seen]) []string {
	var names []string

	for _, rule := range rules {
		about, exists := explanations[rule.name]
		g.Expect(exists).To(BeTrue(), "explanations lacks the row %q", rule.name)
		g.Expect(len(about.facts)+len(about.asks)).NotTo(BeZero(), "the row %q depends on nothing", rule.name)

		if about.action != Nothing {
			g.Expect(about.ends).NotTo(BeEmpty(), "nothing ends the row %q", rule.name)
		}

		for _, key := range about.facts {
			g.Expect(facts).To(HaveKey(key), "row %q", rule.name)
		}

		names = append(names, rule.name)
	}

	return names
}

// TestQuestionsOfRows checks that the explanations of rows name the questions that the rows ask.
func TestQuestionsOfRows(t *testing.T) {
	g := NewWithT(t)
	waits := report.Wait("Reason", "message", time.Time{})

	for _, rule := range changeRules {
		action := explanations[rule.name].action
		if action == Nothing {
			continue
		}

		for _, c := range []Changing{
			{}, {Starts: true}, {Found: "v1", Unpinned: true}, {Found: "v1", OwnsVersion: true},
			{
				First: true, Account: true, CRDs: CRDs{Change: true, Update: true}, Starts: true,
				Planned: Content{Known: true, Version: "v2", Contract: "v1"},
				Release: Release{Handled: true, Decision: state.Decision{Action: state.Apply}},
			},
			{Returns: true, Release: Release{Decision: state.Decision{Action: state.Apply}}},
		} {
			step, decides := rule.decide(c)
			if decides && step.Action != End {
				g.Expect(step.Action).To(Equal(action), rule.name)
			}

			c.Answers = Answers{action: waits}
			if step, decides = rule.decide(c); decides {
				g.Expect(step.Result).To(Equal(waits), rule.name)
			}
		}
	}
}

// TestExplain checks the outcomes of the rows of a change that a gate stops.
func TestExplain(t *testing.T) {
	g := NewWithT(t)
	known := Changing{
		Answers:  Answers{},
		Observed: true,
		History: state.History{Revisions: []state.Revision{
			{Number: 3, Status: state.StatusDeployed, Known: state.AnyRecord()},
		}},
		Planned: Content{Known: true, Version: "v2"},
		Release: Release{
			State: state.Observed{State: state.OutOfSync}, Decision: state.Decision{Action: state.Apply},
		},
	}

	var decisions []Decision

	for step := (Step{}); step.Action != End; {
		seen := known
		seen.Answers = Answers{}

		for action, answer := range known.Answers {
			seen.Answers[action] = answer
		}

		step = Change(seen)
		decisions = append(decisions, Decision{Seen: seen, Step: step})

		known.Answers[step.Action] = report.Result{}
		if step.Action == CheckTurn {
			known.Answers[step.Action] = report.Wait(v1alpha2.ProgressingReason, "core changes first", time.Time{})
		}
	}

	lists := Explain(append([]Decision{{Seen: Installed{}, Step: Step{Action: Nothing}}}, decisions...))
	g.Expect(lists).To(HaveLen(2))
	g.Expect(lists[0].Name).To(Equal("care"))
	g.Expect(lists[1].Name).To(Equal("change"))

	verdicts := map[Verdict]int{}

	for _, row := range lists[1].Rows {
		verdicts[row.Verdict]++

		if row.Verdict == NotReached {
			g.Expect(row.Inputs).To(BeEmpty(), row.Name)
		}
	}

	g.Expect(verdicts[Decided]).To(Equal(1))
	g.Expect(verdicts[Passed]).To(Equal(5), "identify, select, plan, compare, requirements")
	g.Expect(verdicts[NotReached]).To(Equal(13))

	i := slices.IndexFunc(lists[1].Rows, func(r Row) bool { return r.Decisive })
	row := lists[1].Rows[i]
	g.Expect(row.Name).To(Equal("providers change one after the other"))
	g.Expect(row.Result).To(Equal("Waiting"))
	g.Expect(row.Message).To(Equal("core changes first"))
	g.Expect(row.Ends).To(ContainSubstring("The provider that the message names"))
	g.Expect(row.Inputs).To(ConsistOf(
		Input{Name: "what is installed", Value: "none", From: "Helm's records", Trust: Evidence},
		Input{Name: "what the resource asks for", Value: "v2", From: string(fromSource), Trust: Claimed},
		Input{Name: "what follows from the state", Value: "Apply", From: "this reconcile", Trust: Evidence},
		Input{Name: "answer", Value: "core changes first", From: "other provider resources", Trust: Claimed},
	))
}

// TestTrust checks that Helm's records are evidence only if the newest revision is confirmed.
func TestTrust(t *testing.T) {
	g := NewWithT(t)
	unconfirmed := Changing{History: state.History{Revisions: []state.Revision{{Number: 1}}}}
	confirmed := Changing{History: state.History{Revisions: []state.Revision{{Number: 1, Known: state.AnyRecord()}}}}

	g.Expect(trust(unconfirmed, fromRecords)).To(Equal(Claimed))
	g.Expect(trust(confirmed, fromRecords)).To(Equal(Evidence))
	g.Expect(trust(confirmed, fromRecords, fromProviders)).To(Equal(Claimed))
	g.Expect(trust(Removing{}, fromRecords)).To(Equal(Claimed))
}

// TestDecisiveRow checks which row explains what is reported.
func TestDecisiveRow(t *testing.T) {
	deployed := state.History{Revisions: []state.Revision{{Number: 1, Status: state.StatusDeployed}}}
	idle := Decision{Seen: Changing{Release: Release{State: state.Observed{State: state.InSync}}}, Step: Step{Action: End}}
	waits := Decision{
		Seen: Installed{History: deployed, Health: report.Health{Checked: true}},
		Step: Step{Row: "a revision has a deadline", Until: time.Unix(1, 0)},
	}

	for _, test := range []struct {
		name      string
		decisions []Decision
		row       string
	}{
		{"nothing is left to do", []Decision{
			{Seen: Installed{History: deployed, Health: report.Health{Checked: true, Healthy: true}}}, idle,
		}, ""},
		{"a revision has time", []Decision{waits, idle}, "a revision has a deadline"},
		{"objects are no longer healthy", []Decision{{Seen: waits.Seen}, idle}, healthRow},
		{"an attempt has failed", []Decision{
			waits,
			{Seen: Changing{Release: Release{State: state.Observed{State: state.RolledBack}}}, Step: Step{Action: End}},
		}, compareRow},
		{"a revision was just applied", []Decision{{
			Seen: Changing{Applied: true, Release: Release{State: state.Observed{State: state.OutOfSync}}},
			Step: Step{Action: End},
		}, waits}, "a revision has a deadline"},
		{"the change is stopped", []Decision{waits, {
			Seen: Changing{Release: Release{State: state.Observed{State: state.OutOfSync}}},
			Step: Step{
				Row: "a cluster has each provider only once", Action: End, Result: report.Result{Outcome: report.Stalled},
			},
		}}, "a cluster has each provider only once"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := ""

			for _, list := range Explain(test.decisions) {
				for _, row := range list.Rows {
					if row.Decisive {
						found += row.Name
					}
				}
			}

			NewWithT(t).Expect(found).To(Equal(test.row))
		})
	}
}

// TestEndOf checks that a release that is given up does not wait for the operator.
func TestEndOf(t *testing.T) {
	g := NewWithT(t)
	stopped := Changing{Release: Release{Decision: state.Decision{Action: state.Stop}}}

	g.Expect(endOf(compareRow, stopped)).To(HavePrefix("A user, who changes the resource"))
	g.Expect(endOf(compareRow, Changing{})).To(Equal("The operator, which tries again."))
	g.Expect(endOf(healthRow, stopped)).To(Equal(explanations[healthRow].ends))
}
