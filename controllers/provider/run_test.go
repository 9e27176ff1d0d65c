package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	wanted = "digest of what is wanted"
	former = "digest of what was wanted before"
)

var now = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

// newTestRun returns a run of a provider that is changed to v1.1.0, and whose release has the given revisions, newest
// first. The newest holds v1.0.0 and is healthy.
func newTestRun(revisions ...state.Revision) *run {
	p := &v1alpha2.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws", Generation: 2},
	}
	r := newRun(&Reconciler{Dependencies: &Dependencies{}}, p)
	r.policy.Now = now
	r.installed.observed = true
	r.change.goal = goal{version: "v1.1.0", digest: wanted}
	r.change.release.Digest = wanted
	r.installed.History = state.History{
		Release: plan.ReleaseKey(p), Revisions: revisions,
	}

	if len(revisions) > 0 {
		r.installed.Newest = revisions[0]
		r.installed.Record = &release.Record{AppVersion: "v1.0.0", Description: "Upgrade complete"}
		r.installed.health = &health.Report{}
	}

	return r
}

// revision returns a revision that Capstan made.
func revision(number int, status v1alpha2.RevisionStatus, digest string) state.Revision {
	return state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: number, Status: status, ContentDigest: digest, Digest: "v1:known",
		},
		Origin: number,
	}
}

// unhealthy returns that the manager is not healthy.
func unhealthy(message string, found status.Status) health.ObjectHealth {
	manager := object.Key{Namespace: "capa-system", Name: "manager"}
	manager.Group, manager.Version, manager.Kind = "apps", "v1", "Deployment"

	return health.ObjectHealth{Object: manager, Result: health.Result{Status: found, Message: message}}
}

// asksForRevision makes the resource ask for an earlier revision.
func asksForRevision(r *run, number int) {
	r.provider.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: &number}
}

// drifted returns Deployments that other programs have changed.
func drifted(names ...string) []deviation {
	all := make([]deviation, 0, len(names))

	for _, name := range names {
		found := deviation{}
		found.Object.Kind, found.Object.Name, found.Fields = "Deployment", name, []string{"/spec/replicas"}
		all = append(all, found)
	}

	return all
}

// copyOf returns a copy of a run, with a resource and a record of its own.
func copyOf(r *run) *run {
	copied := *r
	copied.provider = cloneProvider(r.provider)

	if r.installed.Record != nil {
		record := *r.installed.Record
		copied.installed.Record = &record
	}

	return &copied
}

func TestRefusalNamesTheNewestTarget(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(3, v1alpha2.RevisionFailed, wanted))
	r.refuse(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Version: "v1.0.1"},
	}, errors.New("too old"))
	r.refuse(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Version: "v1.0.0"},
	}, errors.New("much too old"))

	g.Expect(r.done.refusal).To(HaveSuffix("not rolled back to v1.0.1 (revision 2): too old"))
	g.Expect(r.policy.Refused).To(Equal(map[int]bool{1: true, 2: true}))
}

func TestPolicyOfRelease(t *testing.T) {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }

	for name, c := range map[string]struct {
		spec *v1alpha2.ReleaseSpec
		want state.Policy
	}{
		"defaults": {nil, state.Policy{Retries: 3, Timeout: 5 * time.Minute, Rollback: true}},
		"all fields": {
			&v1alpha2.ReleaseSpec{
				Retries: new(int32(1)), RetryInterval: seconds(30), Timeout: seconds(60),
				OnFailure: v1alpha2.FailureNone, OnExternalChange: v1alpha2.ExternalChangeRevert,
			},
			state.Policy{Retries: 1, RetryInterval: 30 * time.Second, Timeout: time.Minute, Revert: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			provider := &v1alpha2.CoreProvider{}
			provider.Spec.Release = c.spec

			NewWithT(t).Expect(policyOf(provider)).To(Equal(c.want))
		})
	}
}

// TestMarked checks that a provider whose next upgrade may follow what was noted is requeued.
func TestMarked(t *testing.T) {
	patches := &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch}

	for name, c := range map[string]struct {
		policy *v1alpha2.UpgradePolicy
		woken  int
	}{
		"automatic upgrades":    {patches, 1},
		"no automatic upgrades": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			woken := 0

			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.provider.GetSpec().UpgradePolicy = c.policy
			r.provider.GetStatus().History = []v1alpha2.ReleaseRevision{{Number: 1, Digest: "v1:one"}}
			r.installed.Newest.Digest = "v1:one"
			r.Wake = func(string, string, time.Duration) { woken++ }

			r.mark(func(newest *state.Revision) { newest.Healthy = true })
			g.Expect(r.installed.Newest.Healthy).To(BeTrue())
			g.Expect(r.installed.History.Revisions[0].Healthy).To(BeTrue())
			g.Expect(r.provider.GetStatus().History[0].Healthy).To(BeTrue())
			g.Expect(woken).To(Equal(c.woken))
		})
	}
}

// TestCanceledReconcileReportsNothing checks that the operator's end is not reported as a problem of the provider.
func TestCanceledReconcileReportsNothing(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()

	for name, c := range map[string]struct {
		ctx      context.Context
		reported bool
	}{
		"canceled":             {canceled, false},
		"that took too long":   {expired, true},
		"that was not stopped": {t.Context(), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(10)

			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.Events = recorder
			r.status = newStatusWriter(nil, nil, r.provider)

			_, err := r.end(unlessCanceled(c.ctx, Summary{
				Result: resultOf(fmt.Errorf("read ConfigMap a/b: %w", context.Canceled)),
			}))
			g.Expect(err != nil).To(Equal(c.reported))
			g.Expect(len(r.provider.GetStatus().Conditions) > 0).To(Equal(c.reported))
			g.Expect(len(recorder.Events) > 0).To(Equal(c.reported))
		})
	}
}
