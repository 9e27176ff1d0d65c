package offers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var (
	asks  = v1alpha2.RevisionRequest{UID: "uid", Generation: 2}
	later = v1alpha2.RevisionRequest{UID: "uid", Generation: 3}
)

// automatic returns the request of an automatic upgrade.
func automatic(version string) v1alpha2.RevisionRequest {
	request := asks
	request.AutomaticUpgrade = version

	return request
}

// revisions returns a history of revisions that are given oldest first.
func historyOf(all ...state.Revision) state.History {
	var history state.History

	for i, r := range all {
		r.Number, r.Origin, r.Time.Time = i+1, i+1, time.Unix(int64(i), 0)
		history.Revisions = append([]state.Revision{r}, history.Revisions...)
	}

	return history
}

func healthyAt(version string, request v1alpha2.RevisionRequest) state.Revision {
	return state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Version: version, Request: request, Status: v1alpha2.RevisionDeployed, Healthy: true,
		},
	}
}

func failedAt(version string, request v1alpha2.RevisionRequest) state.Revision {
	return state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Version: version, Request: request, Status: v1alpha2.RevisionFailed, Failure: v1alpha2.FailureUnhealthy,
		},
	}
}

func TestExamine(t *testing.T) {
	rollback := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Version: "v1.0.0", Status: v1alpha2.RevisionDeployed, RollbackTo: 1, Healthy: true,
		},
	}
	progressing := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Version: "v1.0.1", Request: automatic("v1.0.1"), Status: v1alpha2.RevisionDeployed,
		},
	}
	interrupted := failedAt("v1.0.1", automatic("v1.0.1"))
	interrupted.Failure = v1alpha2.FailureInterrupted
	failedRollback := rollback
	failedRollback.Status = v1alpha2.RevisionFailed
	others := healthyAt("", asks)

	for name, tt := range map[string]struct {
		history state.History
		asked   v1alpha2.RevisionRequest
		want    past
	}{
		"nothing installed": {historyOf(), asks, past{asked: asks}},
		"a version of the range": {
			historyOf(healthyAt("v1.0.0", asks)), asks, past{asked: asks, version: "v1.0.0", settled: true},
		},
		"a version with build metadata": {
			historyOf(healthyAt(v1alpha2.LabelValue("v1.0.0+build"), asks)), asks, past{asked: asks},
		},
		"another request": {historyOf(healthyAt("v1.0.0", asks)), later, past{asked: later}},
		"progressing": {
			historyOf(healthyAt("v1.0.0", asks), progressing), asks,
			past{asked: automatic("v1.0.1"), version: "v1.0.1"},
		},
		"upgraded": {
			historyOf(healthyAt("v1.0.0", asks), healthyAt("v1.0.1", automatic("v1.0.1"))), asks,
			past{asked: automatic("v1.0.1"), version: "v1.0.1", settled: true},
		},
		"failed, and still there": {
			historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1"))), asks,
			past{asked: automatic("v1.0.1"), version: "v1.0.1"},
		},
		"rolled back": {
			historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1")), rollback), asks,
			past{asked: asks, version: "v1.0.0", givenUp: []string{"v1.0.1"}},
		},
		"rolled back, and handled": {
			historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1")), healthyAt("v1.0.0", asks)), asks,
			past{asked: asks, version: "v1.0.0", settled: true, givenUp: []string{"v1.0.1"}},
		},
		"rolled back to another automatic upgrade": {
			historyOf(healthyAt("v1.0.1", automatic("v1.0.1")), failedAt("v1.0.2", automatic("v1.0.2")), rollback), asks,
			past{asked: automatic("v1.0.1"), version: "v1.0.1", givenUp: []string{"v1.0.2"}},
		},
		"the rollback failed": {
			historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1")), failedRollback), asks,
			past{asked: automatic("v1.0.1"), version: "v1.0.1"},
		},
		"given up, and asks for again": {
			historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1")), healthyAt("v1.0.0", later)), later,
			past{asked: later, version: "v1.0.0", settled: true},
		},
		"interrupted": {
			historyOf(healthyAt("v1.0.0", asks), interrupted, healthyAt("v1.0.1", automatic("v1.0.1"))), asks,
			past{asked: automatic("v1.0.1"), version: "v1.0.1", settled: true},
		},
		"what a user asks for failed": {
			historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", later), rollback), later,
			past{asked: later, version: "v1.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(examine(tt.history, tt.asked)).To(Equal(tt.want))
		})
	}

	foreign := historyOf(healthyAt("v1.0.0", asks), others)
	foreign.Revisions[0].Origin = 1
	NewWithT(t).Expect(examine(foreign, asks)).To(Equal(past{asked: asks}), "helm rollback")
}

func TestLastUpgrade(t *testing.T) {
	g := NewWithT(t)
	upgraded := automatic("v1.0.1")
	rollback := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Version: "v1.0.0", Status: v1alpha2.RevisionDeployed, RollbackTo: 1,
		},
	}
	none := v1alpha2.AutomaticUpgrade{}

	result := func(history state.History, before v1alpha2.AutomaticUpgrade) string {
		shown := &v1alpha2.AutomaticUpgradeStatus{Last: &before}
		last := ptr.Deref(LastUpgrade(shown, history, "Rollback to 1: not healthy"), none)

		return last.Version + " " + string(last.Result) + " " + last.Message
	}

	progressing := healthyAt("v1.0.1", upgraded)
	progressing.Healthy = false
	unavailable := failedAt("v1.0.1", upgraded)
	unavailable.Failure = v1alpha2.FailureUnavailable

	first := healthyAt("v1.0.0", asks)
	g.Expect(LastUpgrade(nil, historyOf(first), "")).To(BeNil())
	g.Expect(result(historyOf(first, progressing), none)).To(Equal("v1.0.1 Progressing "))
	g.Expect(result(historyOf(first, unavailable), none)).To(Equal("v1.0.1 Progressing "))
	g.Expect(result(historyOf(first, healthyAt("v1.0.1", upgraded)), none)).To(Equal("v1.0.1 Succeeded "))
	g.Expect(result(historyOf(first, failedAt("v1.0.1", upgraded)), none)).To(Equal("v1.0.1 Failed "))
	g.Expect(result(historyOf(first, failedAt("v1.0.1", upgraded), rollback), none)).To(Equal("v1.0.1 Failed not healthy"))
	g.Expect(result(historyOf(first, progressing, healthyAt("v1.0.1", later)), none)).To(Equal("v1.0.1 Failed "),
		"replaced before it was healthy")

	rollback.Request = automatic("v1.0.0")
	g.Expect(result(historyOf(first, failedAt("v1.0.1", upgraded), rollback), none)).To(Equal("v1.0.1 Failed not healthy"),
		"the rollback to an automatic upgrade is none")

	handled := historyOf(first, healthyAt("v1.0.1", later))
	g.Expect(result(handled, v1alpha2.AutomaticUpgrade{Version: "v1.0.1", Revision: 2})).To(Equal("v1.0.1 Succeeded "),
		"a user has asks for something else, which the revision fulfills")
}
