package decide

import (
	"maps"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// removed is what the removal of an installed provider depends on, before anything was asked, and what it will find.
func removed() (known Removing, found Found) {
	return Removing{Finalizer: true, Recorded: true}, Found{Known: true, Installed: true, Release: true}
}

// letGoResult is what is left for others to do.
var letGoResult = report.Removing("InfrastructureProvider capa-system/aws", []string{"example.com/other"})

// walkRemoval takes all steps of a removal, and returns their actions and how it ended. Actions without an answer pass.
func walkRemoval(known Removing, found Found, answers Answers) ([]Action, Step) {
	var actions []Action

	known.Answers = Answers{}

	for range 100 {
		step := Remove(known)
		if step.Action == End {
			return actions, step
		}

		actions = append(actions, step.Action)
		known.Answers[step.Action] = answers[step.Action]

		if step.Action == FindInstalled && !answers[step.Action].Ends() {
			known.Found = found
		}
	}

	return actions, Step{}
}

// TestRemoval: what is asked and written, in which order, and how it ends.
func TestRemoval(t *testing.T) {
	unreached := report.Result{Outcome: report.Waiting, Message: "the cluster does not answer"}

	for name, c := range map[string]struct {
		change   func(*Removing, *Found)
		answers  Answers
		expected []Action
		end      report.Result
	}{
		"an installed provider": {
			expected: []Action{FindInstalled, CheckUse, Uninstall, DropFinalizer},
		},
		"core with all that can be asked for": {
			change: func(r *Removing, _ *Found) { r.Core, r.CRDs, r.Namespace = true, true, true },
			expected: []Action{
				FindInstalled, CheckOthers, CheckUse, CheckNamespace, Uninstall, DeleteCRDs, DeleteNamespace, DropFinalizer,
			},
		},
		"core that others need": {
			change:   func(r *Removing, _ *Found) { r.Core = true },
			answers:  Answers{CheckOthers: waits},
			expected: []Action{FindInstalled, CheckOthers}, end: waits,
		},
		"core that was never installed": {
			change:   func(r *Removing, f *Found) { r.Core, r.Recorded, f.Installed = true, false, false },
			expected: []Action{FindInstalled, Uninstall, DropFinalizer},
		},
		"a provider in use": {
			answers:  Answers{CheckUse: refused},
			expected: []Action{FindInstalled, CheckUse}, end: refused,
		},
		"a provider in use that is removed anyway": {
			change:   func(r *Removing, _ *Found) { r.InUse = true },
			expected: []Action{FindInstalled, Uninstall, DropFinalizer},
		},
		"a namespace with other things": {
			change:   func(r *Removing, _ *Found) { r.Namespace = true },
			answers:  Answers{CheckNamespace: refused},
			expected: []Action{FindInstalled, CheckUse, CheckNamespace}, end: refused,
		},
		"a namespace that is being deleted": {
			change:   func(r *Removing, f *Found) { r.Namespace, f.Terminating = true, true },
			expected: []Action{FindInstalled, Uninstall, DropFinalizer},
		},
		"what an earlier attempt has uninstalled": {
			change:   func(r *Removing, f *Found) { r.CRDs, f.Installed, f.Release = true, false, false },
			answers:  Answers{DeleteCRDs: waits},
			expected: []Action{FindInstalled, DeleteCRDs}, end: waits,
		},
		"a release of another program": {
			change:   func(r *Removing, f *Found) { r.CRDs, f.Installed, f.Foreign = true, false, true },
			expected: []Action{FindInstalled, Uninstall, DropFinalizer},
		},
		"a release that cannot be read": {
			answers:  Answers{FindInstalled: waits},
			expected: []Action{FindInstalled}, end: waits,
		},
		"a provider that stays without its release": {
			change:   func(r *Removing, _ *Found) { r.Keep, r.CRDs = true, true },
			expected: []Action{KeepInstalled, DropFinalizer},
		},
		"without our finalizer": {
			change:   func(r *Removing, _ *Found) { r.Finalizer = false },
			answers:  Answers{AwaitOthers: letGoResult},
			expected: []Action{AwaitOthers},
		},
		"a finalizer that another program has just changed": {
			answers:  Answers{DropFinalizer: waits},
			expected: []Action{FindInstalled, CheckUse, Uninstall, DropFinalizer}, end: waits,
		},
		"an installed provider whose cluster does not answer": {
			change:   func(r *Removing, _ *Found) { r.Unreached = unreached },
			expected: []Action{FindKubeConfig}, end: unreached,
		},
		"an installed provider whose kubeconfig is gone": {
			change:   func(r *Removing, _ *Found) { r.Unreached, r.KubeConfigGone = unreached, true },
			expected: []Action{FindKubeConfig, FindNamespace}, end: unreached,
		},
		"an installed provider whose kubeconfig went with its namespace": {
			change: func(r *Removing, _ *Found) {
				r.Unreached, r.KubeConfigGone, r.NamespaceGone = unreached, true, true
			},
			expected: []Action{FindKubeConfig, FindNamespace, ReportLeft, DropFinalizer},
		},
		"a provider that was never installed, and whose kubeconfig is gone": {
			change: func(r *Removing, _ *Found) {
				r.Unreached, r.KubeConfigGone, r.Recorded = unreached, true, false
			},
			expected: []Action{FindKubeConfig, DropFinalizer},
		},
		"a provider that was never installed, and whose cluster does not answer": {
			change:   func(r *Removing, _ *Found) { r.Unreached, r.Recorded = unreached, false },
			expected: []Action{FindKubeConfig}, end: unreached,
		},
		"a provider that was never installed, and whose cluster has not answered for a minute": {
			change:   func(r *Removing, _ *Found) { r.Unreached, r.Recorded, r.Expired = unreached, false, true },
			expected: []Action{FindKubeConfig, DropFinalizer},
		},
		"a provider that was never installed, in a cluster that could not be read for a minute": {
			change:   func(r *Removing, _ *Found) { r.Remote, r.Recorded, r.Expired = true, false, true },
			answers:  Answers{FindInstalled: waits},
			expected: []Action{FindInstalled, DropFinalizer},
		},
		"one in the operator's own cluster": {
			change:   func(r *Removing, _ *Found) { r.Recorded, r.Expired = false, true },
			answers:  Answers{FindInstalled: waits},
			expected: []Action{FindInstalled}, end: waits,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			known, found := removed()

			if c.change != nil {
				c.change(&known, &found)
			}

			if !c.end.Ends() {
				c.end = letGoResult
			}

			answers := Answers{DropFinalizer: letGoResult}
			maps.Copy(answers, c.answers)

			actions, last := walkRemoval(known, found, answers)
			g.Expect(actions).To(Equal(c.expected))
			g.Expect(last.Result).To(Equal(c.end))
		})
	}
}

// TestRemovalAsksNothingTwice walks random removals: no action is taken twice, each removal ends, and what is known to
// be installed is checked before it is deleted.
func TestRemovalAsksNothingTwice(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))

	for range 50_000 {
		known, found := removed()

		for _, set := range []*bool{
			&known.Finalizer, &known.Keep, &known.InUse, &known.CRDs, &known.Namespace, &known.Core, &known.Remote,
			&known.Recorded, &known.Expired, &known.KubeConfigGone, &known.NamespaceGone,
			&found.Installed, &found.Release, &found.Foreign, &found.Terminating,
		} {
			*set = random.IntN(2) == 0
		}

		known.Expired = known.Expired && !known.Recorded

		if random.IntN(4) == 0 {
			known.Unreached = waits
		}

		answers := Answers{}

		for _, action := range []Action{
			FindKubeConfig, FindNamespace, ReportLeft, KeepInstalled, FindInstalled, CheckOthers, CheckUse, CheckNamespace,
			Uninstall, DeleteCRDs, DeleteNamespace, DropFinalizer,
		} {
			if random.IntN(10) == 0 {
				answers[action] = refused
			}
		}

		actions, last := walkRemoval(known, found, answers)
		g.Expect(last.Action).To(Equal(End), "%+v", known)

		for i, action := range actions {
			g.Expect(actions[:i]).NotTo(ContainElement(action))

			g.Expect(known.Finalizer).To(Equal(action != AwaitOthers))

			if action == Uninstall || action == DeleteNamespace {
				g.Expect(actions[:i]).To(ContainElement(FindInstalled))
				g.Expect(known.Keep || known.Unreached.Ends()).To(BeFalse())
			}

			if action == Uninstall && found.Installed && !known.InUse && !found.Terminating {
				g.Expect(actions[:i]).To(ContainElement(CheckUse))
			}
		}
	}
}
