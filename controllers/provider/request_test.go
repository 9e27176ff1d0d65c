package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// TestAsksAgain: revisions tell what was asked for, and the status as long as none does.
func TestAsksAgain(t *testing.T) {
	deployed := revision(1, v1alpha2.RevisionDeployed, wanted)
	byHelm := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionDeployed}}
	requests := func(r *run) { r.policy.Requested = true }
	changes := func(r *run) { r.policy.SpecChanged = true }
	fulfills := func(r *run) { r.installed.History.Revisions[0].Request = plan.Asked(r.provider) }

	for name, c := range map[string]struct {
		revisions []state.Revision
		changes   []func(*run)
		want      bool
	}{
		"nothing":                        {nil, nil, false},
		"a request, with nothing there":  {nil, []func(*run){requests}, true},
		"a spec, with nothing there":     {nil, []func(*run){changes}, false},
		"a spec, after another program":  {[]state.Revision{byHelm}, []func(*run){changes}, true},
		"nothing, after another program": {[]state.Revision{byHelm}, nil, false},
		"what is installed":              {[]state.Revision{deployed}, []func(*run){fulfills}, false},
		"another spec than is installed": {
			[]state.Revision{deployed}, []func(*run){fulfills, func(r *run) { r.provider.SetGeneration(3) }}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(c.revisions...)
			r.policy.SpecChanged = false

			for _, change := range c.changes {
				change(r)
			}

			NewWithT(t).Expect(r.asksAgain(r.asked())).To(Equal(c.want))
		})
	}
}

// TestRefreshes: for a request the source is read again, until it has answered.
func TestRefreshes(t *testing.T) {
	requested := func(r *run) { r.provider.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"}) }
	handled := func(r *run) { r.provider.GetStatus().LastHandledReconcileAt = "now" }
	unavailable := func(r *run) {
		with(r, v1alpha2.InputsUnavailableCondition, v1alpha2.ComponentsFetchErrorReason, "", metav1.ConditionTrue, 0)
	}

	for name, c := range map[string]struct {
		changes []func(*run)
		want    bool
	}{
		"nothing":                              {nil, false},
		"a request":                            {[]func(*run){requested}, true},
		"a request that was handled":           {[]func(*run){requested, handled}, false},
		"a request that met it unavailable":    {[]func(*run){requested, handled, unavailable}, true},
		"it is unavailable, without a request": {[]func(*run){unavailable}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.installed.History.Revisions[0].Request = plan.Asked(r.provider)

			for _, change := range c.changes {
				change(r)
			}

			r.policy = policyOf(r.provider)
			NewWithT(t).Expect(r.refreshes()).To(Equal(c.want))
		})
	}
}

// TestIsHandled: that the newest revision fulfills a request is noted once, and not while inputs are missing.
func TestIsHandled(t *testing.T) {
	decides := func(action state.Action) func(*run) {
		return func(r *run) { r.change.release.Decision.Action = action }
	}
	lacks := func(r *run) { r.change.problem = refused }

	for name, c := range map[string]struct {
		changes []func(*run)
		want    bool
	}{
		"a revision that is kept":             {[]func(*run){decides(state.None)}, true},
		"another program's that is held":      {[]func(*run){decides(state.Hold)}, true},
		"a revision that is about to change":  {[]func(*run){decides(state.Apply)}, false},
		"another spec, while inputs are away": {[]func(*run){decides(state.None), lacks}, true},
		"a request, while inputs are away": {[]func(*run){decides(state.None), lacks, func(r *run) {
			r.installed.Newest.Request = plan.Asked(r.provider)
			r.provider.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
		}}, false},
		"what is noted": {[]func(*run){decides(state.None), func(r *run) {
			r.installed.Newest.Request = plan.Asked(r.provider)
		}}, false},
		"a revision that is not known": {[]func(*run){decides(state.None), func(r *run) {
			r.installed.Newest.Digest = ""
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			for _, change := range c.changes {
				change(r)
			}

			NewWithT(t).Expect(r.isHandled()).To(Equal(c.want))
		})
	}
}
