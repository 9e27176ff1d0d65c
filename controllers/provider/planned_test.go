package provider

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
)

// TestPlanIsUsedAgain checks when a plan is used again that an earlier reconcile of the same change has made. What else
// a plan depends on is in TestPreventedUpgradeIsTriedAgain.
func TestPlanIsUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run, *planned)
		want   bool
	}{
		"the same":                   {func(*run, *planned) {}, true},
		"a new generation":           {func(r *run, _ *planned) { r.provider.SetGeneration(3) }, false},
		"another version of a range": {func(r *run, _ *planned) { r.selection.Version = "v1.2.0" }, false},
		"a version that was given up": {
			func(r *run, _ *planned) { r.provider.GetStatus().DesiredVersion = "v1.0.0" }, false,
		},
		"a plan of a while ago":          {func(_ *run, p *planned) { p.at = p.at.Add(-planTime) }, false},
		"what was installed by it":       {func(r *run, _ *planned) { install(r, "salt") }, true},
		"what was installed by an other": {func(r *run, _ *planned) { install(r, "other") }, false},
		"what another program has made":  {func(r *run, _ *planned) { r.installed.Record = &release.Record{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun()
			r.Watches = namespaces.New(nil, nil)
			r.provider.GetStatus().DesiredVersion = "v1.1.0"

			last := &planned{asked: r.findAsked(), at: time.Now()}
			last.plan.Version, last.plan.Release.Salt = "v1.1.0", "salt"
			c.change(r, last)

			NewWithT(t).Expect(r.stillServes(last, r.findAsked())).To(Equal(c.want))
		})
	}
}

// install makes the newest revision the resource's, with digests of a salt.
func install(r *run, salt string) {
	r.installed.Newest = revision(1, v1alpha2.RevisionDeployed, wanted)
	r.installed.Record = &release.Record{Salt: salt}
}

// TestPlanIsKept checks which plans later reconciles use again.
func TestPlanIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		chart *plan.Chart
		err   error
		want  bool
	}{
		"a plan":                   {&plan.Chart{}, nil, true},
		"a plan that failed":       {nil, errors.New("refused"), false},
		"a plan of an older chart": {&plan.Chart{Outdated: errors.New("out of reach")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun()
			r.memory.planned = &planned{plan: plan.Plan{Version: "v1.0.0"}}
			r.keepPlan(asked{}, plan.Plan{Version: "v1.1.0", Chart: c.chart}, c.err)

			kept := r.memory.planned != nil && r.memory.planned.plan.Version == "v1.1.0"
			NewWithT(t).Expect(kept).To(Equal(c.want))
			NewWithT(t).Expect(r.memory.planned != nil).To(Equal(c.want), "an earlier one is not used either")
		})
	}
}

// TestPlanIsNotKept checks that a ready provider occupies no memory for its plan.
func TestPlanIsNotKept(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun()
	r.memory.planned = &planned{plan: plan.Plan{Version: "v1.1.0"}}

	r.remember(Waiting)
	g.Expect(r.memory.planned).NotTo(BeNil())

	r.remember(Ready)
	g.Expect(r.memory.planned).To(BeNil())
}

// TestAwaitCore checks that a first installation that waits for core is not planned again before core is ready, unless
// it asks for something else.
func TestAwaitCore(t *testing.T) {
	waits := Result{Outcome: Waiting, Reason: v1alpha2.WaitingForCoreProviderReadyReason}

	for name, c := range map[string]struct {
		ended  Result
		change func(*run)
		waits  bool
	}{
		"nothing":                {waits, func(*run) {}, true},
		"another generation":     {waits, func(r *run) { r.provider.SetGeneration(3) }, false},
		"a release by helm":      {waits, func(r *run) { r.installed = newTestRun(revision(1, "", "")).installed }, false},
		"it waited for others":   {Result{Outcome: Waiting, Reason: v1alpha2.ProgressingReason}, func(*run) {}, false},
		"it was not planned yet": {Result{}, func(*run) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSurroundings()
			r := newTestRun()
			r.Watches = namespaces.New(nil, nil)
			r.Preflight = &preflight.Checker{Client: s.cluster(t)}

			r.noteWait(c.ended)
			c.change(r)

			err := r.awaitCore(t.Context())
			g.Expect(resultOf(err).Reason == v1alpha2.WaitingForCoreProviderReadyReason).To(Equal(c.waits), "%v", err)
		})
	}
}
