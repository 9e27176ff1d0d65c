package state

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// key identifies a line of the table in the comment of the package: a state has no two lines with the same action.
type key struct {
	State  State
	Action Action
}

func (k key) String() string { return fmt.Sprintf("%s %s", k.State, k.Action) }

// example is a history and a policy to which a line applies.
type example struct {
	history History
	policy  Policy
}

var examples = map[key][]example{
	{Absent, Hold}:  {{history(), policy()}},
	{Absent, Apply}: {{history(), policy(notExisted)}, {history(), policy(specChanged)}, {history(), policy(requested)}},

	{RecordsLost, Apply}: {{History{Lost: true}, policy()}},

	{Locked, Wait}: {{history(revision(v1alpha2.RevisionUninstalling, "wanted")), policy()}},

	{Interrupted, Rollback}: {{history(worked, rejected, rollbackInterrupted), policy()}},
	{Interrupted, Apply}: {
		{history(revision(v1alpha2.RevisionPendingUpgrade, "wanted")), policy()},
		{history(revision(v1alpha2.RevisionPendingUpgrade, "wanted", forged)), policy()},
		{history(worked, rollbackInterrupted), policy()},
		{history(worked, rejected, revision(v1alpha2.RevisionPendingRollback, "old", rollbackTo(9))), policy()},
		{history(worked, rejected, rollbackInterrupted), policy(refused(1))},
	},

	{Uninstalled, Hold}: {{history(uninstalled), policy()}},
	{Uninstalled, Apply}: {
		{history(uninstalled), policy(reverting)},
		{history(uninstalled), policy(requested)},
	},

	{Corrupt, Apply}: {{history(revision(v1alpha2.RevisionDeployed, "wanted", unreadable)), policy()}},

	{Unconfirmed, Apply}: {
		{history(planted), policy()},
		{history(deployed, planted), policy()},
		{history(revision(v1alpha2.RevisionUninstalled, "wanted", forged)), policy()},
	},

	{Unmanaged, Hold}: {{history(replacedByWanted, helms), policy()}, {history(replaced, helms), policy()}},
	{Unmanaged, Apply}: {
		{history(replacedByWanted, helms), policy(reverting)},
		{history(replacedByWanted, helms), policy(requested)},
		{history(helms), policy()},
		{history(worked, interrupted, helms), policy()},
		{history(revision(v1alpha2.RevisionDeployed, "", byOthers, forged)), policy()},
	},

	{OutOfSync, Apply}: {{history(revision(v1alpha2.RevisionDeployed, "old")), policy()}},

	{Failed, Rollback}: {{history(worked, rejected), policy()}, {history(worked, unhealthy), policy()}},
	{Failed, Wait}:     {{history(rejected), policy()}, {history(worked, unavailable), policy()}},
	{Failed, Stop}:     {{history(rejected, rejected), policy(muchLater)}},
	{Failed, Apply}: {
		{history(rejected), policy(later)},
		{history(worked, interrupted), policy()},
		{history(worked, rejected), policy(requested)},
	},

	{RolledBack, Wait}: {
		{history(worked, rejected, rolledBack), policy()},
		{history(worked, rejected, rollingBack), policy(later, noRetries)},
	},
	{RolledBack, Stop}: {{history(worked, rejected, rolledBack, rejected, rolledBack), policy(muchLater)}},
	{RolledBack, Apply}: {
		{history(worked, rejected, rolledBack), policy(later)},
		{history(worked, rejected, rolledBack), policy(requested)},
	},

	{RollbackFailed, Wait}: {{history(worked, rejected, rollbackFailed), policy()}},
	{RollbackFailed, Stop}: {
		{history(worked, rejected, rolledBack, rejected, rollbackFailed), policy(muchLater, refused(1))},
	},
	{RollbackFailed, Apply}: {
		{history(worked, rejected, revision(v1alpha2.RevisionFailed, "old", rollbackTo(9))), policy(later)},
		{history(worked, rejected, rollbackFailed), policy(later, refused(1))},
	},
	{RollbackFailed, Rollback}: {
		{history(worked, rejected, rollbackFailed), policy(later)},
		{history(worked, rejected, rollbackFailed, rollbackFailed), policy(muchLater)},
		{history(worked, rejected, rollbackFailed), policy(requested)},
	},

	{InSync, None}: {{history(deployed), policy()}},
}

func TestTableExamples(t *testing.T) {
	for line, all := range examples {
		t.Run(line.String(), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(all).NotTo(BeEmpty())

			for i, e := range all {
				observed, decision := next(e.history, e.policy)
				g.Expect(key{observed.State, decision.Action}).To(Equal(line), "example %d: %s", i, observed.Message)
			}
		})
	}
}

// TestTableIsComplete tries all short histories with all policies: whatever follows has examples.
func TestTableIsComplete(t *testing.T) {
	g := NewWithT(t)
	found := map[key]bool{}

	for _, h := range append(allHistories(3), History{Lost: true}) {
		for _, p := range allPolicies() {
			observed, decision := next(h, p)
			found[key{observed.State, decision.Action}] = true

			if decision.Action == Rollback {
				g.Expect(decision.Revision.Confirmed()).To(BeTrue(), "a rollback to a revision that is not the resource's")
			}
		}
	}

	g.Expect(slices.Collect(maps.Keys(found))).To(ConsistOf(slices.Collect(maps.Keys(examples))))
}

// allHistories returns all histories of up to so many revisions, out of those that make a
// difference.
func allHistories(length int) []History {
	kinds := []Revision{
		worked, workedPaused, replaced, replacedByWanted, deployed, rejected, unhealthy, unavailable, interrupted,
		uninstalled, helms, planted, plantedOld, rolledBack, rollingBack, rollbackFailed,
		rollbackInterrupted,
		revision(v1alpha2.RevisionDeployed, "old"),
		revision(v1alpha2.RevisionDeployed, "wanted", unreadable),
		revision(v1alpha2.RevisionPendingUpgrade, "wanted"),
		revision(v1alpha2.RevisionPendingUpgrade, "", byOthers),
		revision(v1alpha2.RevisionUninstalling, "wanted"),
		revision(v1alpha2.RevisionFailed, "old", rollbackTo(9)),
	}

	all := [][]Revision{nil}
	longest := all

	for range length {
		var longer [][]Revision

		for _, revisions := range longest {
			for _, kind := range kinds {
				longer = append(longer, append(slices.Clone(revisions), kind))
			}
		}

		all = append(all, longer...)
		longest = longer
	}

	histories := make([]History, 0, len(all))
	for _, revisions := range all {
		histories = append(histories, history(revisions...))
	}

	return histories
}

// allPolicies returns the policies with every combination of switches, early and late, with and
// without retries.
func allPolicies() []Policy {
	switches := []func(*Policy){
		reverting, specChanged, requested, notExisted, noRollback, muchLater, pausing, refused(1),
		func(p *Policy) { p.Retries = 0 },
	}

	policies := []Policy{policy()}

	for _, change := range switches {
		for _, p := range slices.Clone(policies) {
			change(&p)
			policies = append(policies, p)
		}
	}

	return policies
}

func TestPackageCommentHasTheTable(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	g.Expect(err).NotTo(HaveOccurred())

	var lines []string

	for line := range strings.Lines(file.Doc.Text()) {
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			lines = append(lines, strings.Join(strings.Fields(text)[:2], " "))
		}
	}

	want := make([]string, 0, len(examples))
	for line := range examples {
		want = append(want, line.String())
	}

	g.Expect(lines).To(ConsistOf(want))
}

func TestImports(t *testing.T) {
	g := NewWithT(t)
	dependencies, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(string(dependencies))).NotTo(ContainElement(Or(
		HavePrefix("helm.sh/helm"),
		HavePrefix("k8s.io/client-go"),
		HavePrefix("sigs.k8s.io/controller-runtime"),
	)), "the decisions depend on nothing but the history")
}
