package decide

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// walkBeginning takes all steps with which a reconcile begins, and returns their actions and the last one. Actions
// without an answer pass.
func walkBeginning(known Beginning, answers Answers) ([]Action, Step) {
	var actions []Action

	known.Answers = Answers{}

	for range 100 {
		step := Begin(known)

		switch step.Action {
		case End, Ignore, Show, RemoveProvider, Maintain:
			return append(actions, step.Action), step
		}

		actions = append(actions, step.Action)
		known.Answers[step.Action] = answers[step.Action]
		known.Readable = known.Readable || step.Action == Observe
	}

	return actions, Step{}
}

// TestBeginning: what is asked and written before care, change and removal, in which order, and what follows.
func TestBeginning(t *testing.T) {
	unreached := report.Result{Outcome: report.Waiting, Message: "the cluster does not answer"}

	for name, c := range map[string]struct {
		known    Beginning
		answers  Answers
		expected []Action
		end      report.Result
	}{
		"a resource": {
			known:    Beginning{Included: true, Finalizer: true},
			expected: []Action{FindCluster, Maintain},
		},
		"a new resource": {
			known:    Beginning{Included: true},
			expected: []Action{AddFinalizer, FindCluster, Maintain},
		},
		"one whose finalizer is refused": {
			known:    Beginning{Included: true},
			answers:  Answers{AddFinalizer: refused},
			expected: []Action{AddFinalizer, End}, end: refused,
		},
		"one of another operator": {
			known:    Beginning{Deleted: true, Finalizer: true},
			expected: []Action{Ignore},
		},
		"one whose cluster does not answer": {
			known:    Beginning{Included: true, Finalizer: true},
			answers:  Answers{FindCluster: unreached},
			expected: []Action{FindCluster, End}, end: unreached,
		},
		"a deleted one": {
			known:    Beginning{Included: true, Deleted: true, Finalizer: true},
			expected: []Action{FindCluster, RemoveProvider},
		},
		"a deleted one without a finalizer": {
			known:    Beginning{Included: true, Deleted: true},
			expected: []Action{FindCluster, RemoveProvider},
		},
		"a deleted one whose cluster does not answer": {
			known:    Beginning{Included: true, Deleted: true, Finalizer: true},
			answers:  Answers{FindCluster: unreached},
			expected: []Action{FindCluster, RemoveProvider},
		},
		"a suspended one": {
			known:    Beginning{Included: true, Suspended: true, Finalizer: true},
			expected: []Action{FindCluster, Observe, Identify, CheckHealth, Compare, CompareCRDs, Show},
		},
		"a suspended one of a provider that another has installed": {
			known:    Beginning{Included: true, Suspended: true},
			answers:  Answers{Identify: refused},
			expected: []Action{FindCluster, Observe, Identify, CheckHealth, Compare, CompareCRDs, Show},
		},
		"a suspended one that cannot be read": {
			known:    Beginning{Included: true, Suspended: true},
			answers:  Answers{Observe: waits},
			expected: []Action{FindCluster, Observe, End}, end: waits,
		},
		"a suspended one whose CRDs cannot be compared": {
			known:    Beginning{Included: true, Suspended: true},
			answers:  Answers{CompareCRDs: waits},
			expected: []Action{FindCluster, Observe, Identify, CheckHealth, Compare, CompareCRDs, End}, end: waits,
		},
		"a suspended one that is deleted": {
			known:    Beginning{Included: true, Suspended: true, Deleted: true, Finalizer: true},
			expected: []Action{End}, end: report.DeletionSuspended(false),
		},
		"one of cluster-api-operator": {
			known:    Beginning{Included: true, OtherFinalizer: true},
			expected: []Action{CheckStopped, TakeOver, FindCluster, Maintain},
		},
		"one that this has put its finalizer on again": {
			known:    Beginning{Included: true, OtherFinalizer: true, Finalizer: true},
			expected: []Action{CheckStopped, TakeOver, FindCluster, Maintain},
		},
		"one of cluster-api-operator, which runs": {
			known:    Beginning{Included: true, OtherFinalizer: true},
			answers:  Answers{CheckStopped: waits},
			expected: []Action{CheckStopped, End}, end: waits,
		},
		"a suspended one of cluster-api-operator": {
			known:    Beginning{Included: true, Suspended: true, OtherFinalizer: true},
			expected: []Action{FindCluster, Observe, Identify, CheckHealth, Compare, CompareCRDs, Show},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			actions, last := walkBeginning(c.known, c.answers)
			g.Expect(actions).To(Equal(c.expected))
			g.Expect(last.Result).To(Equal(c.end))
		})
	}
}

// TestRandomBeginnings: whatever is known and answered, no action is taken twice, the operator writes nothing to a
// resource that is not its own or is suspended, and ends.
func TestRandomBeginnings(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	is := func() bool { return random.IntN(2) == 0 }

	for range 5_000 {
		known := Beginning{
			Included: is(), Deleted: is(), Suspended: is(), Finalizer: is(), OtherFinalizer: is(),
		}

		answers := Answers{}

		for _, action := range []Action{CheckStopped, TakeOver, AddFinalizer, FindCluster, Observe} {
			if random.IntN(5) == 0 {
				answers[action] = waits
			}
		}

		actions, last := walkBeginning(known, answers)
		g := NewWithT(t)
		g.Expect(last.Action).NotTo(BeEmpty(), "it ends: %+v", known)

		taken := map[Action]bool{}
		for _, action := range actions {
			g.Expect(taken[action]).To(BeFalse(), "%s is taken twice: %+v", action, known)
			taken[action] = true
		}

		if !known.Included || known.Suspended {
			g.Expect(actions).NotTo(ContainElements(
				BeElementOf(TakeOver, AddFinalizer, RemoveProvider, Maintain)), "%+v", known)
		}

		if last.Action == Maintain {
			g.Expect(known.Finalizer || actions[0] == AddFinalizer || actions[0] == CheckStopped).To(BeTrue(),
				"the finalizer comes before an installation: %+v", known)
		}
	}
}
