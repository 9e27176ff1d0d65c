package provider

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var (
	stopped = Result{Outcome: Stalled, message: because("refused")}
	pending = Result{Outcome: Waiting, message: because("waits")}
)

// upgrading returns a run that upgrades v1.0.0 to v1.1.0, with CRDs that are updated.
func upgrading() *run {
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, former))
	r.target = &clusters.Target{}
	r.policy.Existed = true
	r.installed.Record.Contract = "v1beta1"
	r.change.goal.action = metrics.ActionUpgrade
	r.change.release.Decision.Action = state.Apply
	r.change.crds.differ = true
	plans(r, "v1.1.0", "v1beta1")

	return r
}

func plans(r *run, version, contract string) {
	r.change.plan.Version, r.change.goal.version, r.change.goal.contract = version, version, contract
}

func withoutCRDs(r *run) { r.change.crds.differ = false }

func starts(r *run) {
	r.selection = offers.Selection{Version: "v1.1.0", From: "v1.0.0"}
}

func returns(r *run) { r.change.goal.action = metrics.ActionRollback }

func inSync(r *run) {
	r.change.release.Decision.Action, r.change.release.State.State = state.None, state.InSync
}

// TestStepsOfChange: which steps a change needs, in their order.
func TestStepsOfChange(t *testing.T) {
	const (
		contracts, core, turn = "contracts fit, and variables and kinds exist", "core is ready before what needs it",
			"providers change one after the other"
		begin, announce = "core that changes at the same time comes first", "a change is announced before it begins"
		others          = "no other program has installed the provider"
		prepare, apply  = "changes of CRDs break nothing", "the release is applied"
		send, served    = "CRDs are applied before the release", "the CRDs are served"
		await           = "nothing prevents the release"
	)

	for name, c := range map[string]struct {
		change func(*run)
		want   [][]string
	}{
		"an upgrade": {func(*run) {}, [][]string{
			{contracts, turn, prepare, "the API server accepts all objects", begin, announce, send, await, apply, served},
		}},
		"an upgrade to the same version": {
			func(r *run) { plans(r, "v1.0.0", "v1beta1"); withoutCRDs(r) },
			[][]string{{contracts, prepare, send, await, apply, served}},
		},
		"an upgrade to another contract": {
			func(r *run) { plans(r, "v1.1.0", "v1beta2"); withoutCRDs(r) },
			[][]string{{contracts, core, turn, prepare, begin, announce, send, await, apply, served}},
		},
		"a first installation": {
			func(r *run) {
				r.policy.Existed, r.installed = false, installed{observed: true}
			},
			[][]string{
				{contracts, core, turn, others, prepare},
				{"the API server accepts all objects", begin, announce, send, await, apply, served},
			},
		},
		"nothing to apply": {
			func(r *run) { inSync(r); withoutCRDs(r) }, [][]string{{prepare, send, await, served}},
		},
		"a rollback that a user asks for": {
			func(r *run) { returns(r); withoutCRDs(r) },
			[][]string{{"the provider may return to the revision", apply}},
		},
		"an upgrade that was given up before the status was lost": {
			func(r *run) {
				r.change.release.State.State = state.Unconfirmed
				r.provider.SetAnnotations(map[string]string{v1alpha2.GivenUpVersionAnnotation: "v1.1.0"})
				withoutCRDs(r)
			},
			[][]string{{
				"a version that was given up is not tried again", contracts, turn, prepare, begin, announce, send, await,
				apply, served,
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := upgrading()
			c.change(r)

			var needed, want []string

			for _, step := range steps {
				if step.needed(r) {
					needed = append(needed, step.name)
				}
			}

			for _, names := range c.want {
				want = append(want, names...)
			}

			NewWithT(t).Expect(needed).To(Equal(want))
		})
	}
}

// TestCheckSelected: an automatic upgrade is given up if the source has something else than it has offered.
func TestCheckSelected(t *testing.T) {
	const offered = "the source has offered v1.1.0 with the contract v1beta1 of the installed version, and now has "

	for name, c := range map[string]struct {
		change  func(*run)
		message string
	}{
		"what was offered": {starts, ""},
		"another version": {
			func(r *run) { starts(r); plans(r, "v1.2.0", "v1beta1") }, "v1.2.0 with the contract v1beta1",
		},
		"another contract": {
			func(r *run) { starts(r); plans(r, "v1.1.0", "v1beta2") }, "v1.1.0 with the contract v1beta2",
		},
		"what a user has changed": {func(r *run) { plans(r, "v1.2.0", "v1beta1") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := upgrading()
			c.change(r)

			result := resultOf(r.checkSelected())
			g.Expect(result.Ends()).To(Equal(c.message != ""))

			if result.Ends() {
				g.Expect(result.text()).To(Equal(offered + c.message))
				g.Expect(result.Condition).To(Equal(v1alpha2.PreflightCheckCondition))
			}
		})
	}
}

// TestNeedsCore: who waits for core.
func TestNeedsCore(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		want   bool
	}{
		"a first installation": {func(r *run) { r.installed = installed{observed: true} }, true},
		"a revision of others": {func(r *run) { r.installed.History.Revisions[0].Digest = "" }, true},
		"the same contract":    {func(*run) {}, false},
		"another contract":     {func(r *run) { plans(r, "v1.1.0", "v1beta2") }, true},
		"an unknown contract":  {func(r *run) { r.installed.Record.Contract = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := upgrading()
			c.change(r)
			NewWithT(t).Expect(r.needsCore()).To(Equal(c.want))
		})
	}
}

// TestLetCoreBegin: who waits for core to arrive.
func TestLetCoreBegin(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		waits  bool
	}{
		"changed just now":     {func(*run) {}, true},
		"core":                 {func(r *run) { r.Type = v1alpha2.CoreProviderType }, false},
		"not changed":          {func(r *run) { r.policy.SpecChanged = false }, false},
		"a first installation": {func(r *run) { r.installed = installed{observed: true} }, false},
		"changed a while ago":  {func(r *run) { r.arrived = r.arrived.Add(-settleTime) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				r := upgrading()
				r.policy.SpecChanged, r.arrived = true, time.Now()
				c.change(r)

				begin := time.Now()

				g.Expect(r.letCoreBegin(t.Context())).To(Succeed())
				g.Expect(time.Since(begin) == settleTime).To(Equal(c.waits))
			})
		})
	}
}

// TestTriesFirst: what is tried before its CRDs are applied.
func TestTriesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		want   bool
	}{
		"changed CRDs":  {func(*run) {}, true},
		"the same CRDs": {withoutCRDs, false},
		"CRDs only":     {inSync, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := upgrading()
			c.change(r)
			NewWithT(t).Expect(r.triesFirst()).To(Equal(c.want))
		})
	}
}

// TestPassed: when nothing prevents the release from being what the resource asks for.
func TestPassed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		passed bool
	}{
		"all checks":            {func(*run) {}, true},
		"in sync":               {inSync, true},
		"out of sync, and held": {func(r *run) { r.change.release.Decision.Action = state.Hold }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := upgrading()
			c.change(r)
			g.Expect(r.pass(t.Context())).To(Succeed())
			g.Expect(r.change.passed).To(Equal(c.passed))
		})
	}
}

// TestPreventsUpgrade: an automatic upgrade that a check prevents is given up, unless something was changed.
func TestPreventsUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		result Result
		want   bool
	}{
		"a check that a user must fix":   {starts, stopped, true},
		"a check that may pass later":    {starts, pending, false},
		"a problem with inputs":          {func(r *run) { starts(r); r.change.problem = pending }, Result{}, true},
		"an upgrade that a user started": {func(*run) {}, stopped, false},
		"after the CRDs":                 {func(r *run) { starts(r); r.change.crds.applied = true }, stopped, false},
		"after the release":              {func(r *run) { starts(r); r.done.applied = true }, stopped, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := upgrading()
			c.change(r)
			NewWithT(t).Expect(r.preventsUpgrade(endWith(c.result))).To(Equal(c.want))
		})
	}
}

// sameVersion returns a change of a plan that has the installed version.
func sameVersion(change func(*run)) func(*run) {
	return func(r *run) {
		plans(r, "v1.0.0", "v1beta1")
		change(r)
	}
}

// TestBegins: what is announced, and when.
func TestBegins(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		want   bool
	}{
		"another version":      {func(*run) {}, true},
		"the same version":     {sameVersion(func(*run) {}), false},
		"an automatic upgrade": {sameVersion(starts), true},
		"a first installation": {sameVersion(func(r *run) { r.policy.Existed = false }), true},
		"nothing to apply":     {inSync, false},
		"a rollback":           {returns, false},
		"without CRDs":         {withoutCRDs, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := upgrading()
			c.change(r)
			NewWithT(t).Expect(r.begins()).To(Equal(c.want))
		})
	}
}
