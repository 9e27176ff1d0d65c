package autoupgrade

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var (
	asked = state.Request{UID: "uid", Generation: 2}
	later = state.Request{UID: "uid", Generation: 3}
)

// automatic returns the request of an automatic upgrade.
func automatic(version string) state.Request {
	request := asked
	request.Automatic = version

	return request
}

// revisions returns a history of revisions that are given oldest first.
func revisions(all ...state.Revision) state.History {
	var history state.History

	for i, r := range all {
		r.Number, r.Origin, r.Created = i+1, i+1, time.Unix(int64(i), 0)
		history.Revisions = append([]state.Revision{r}, history.Revisions...)
	}

	return history
}

func healthy(version string, request state.Request) state.Revision {
	return state.Revision{Version: version, Request: request, Status: state.StatusDeployed, Healthy: true}
}

func failed(version string, request state.Request) state.Revision {
	return state.Revision{
		Version: version, Request: request, Status: state.StatusFailed, Failure: state.FailureUnhealthy,
	}
}

func TestExamine(t *testing.T) {
	rollback := state.Revision{Version: "v1.0.0", Status: state.StatusDeployed, RollbackTo: 1, Healthy: true}
	progressing := state.Revision{Version: "v1.0.1", Request: automatic("v1.0.1"), Status: state.StatusDeployed}
	interrupted := failed("v1.0.1", automatic("v1.0.1"))
	interrupted.Failure = state.FailureInterrupted
	failedRollback := rollback
	failedRollback.Status = state.StatusFailed
	others := healthy("", asked)

	for name, tt := range map[string]struct {
		history state.History
		asked   state.Request
		want    past
	}{
		"nothing installed": {revisions(), asked, past{asked: asked}},
		"a version of the range": {
			revisions(healthy("v1.0.0", asked)), asked, past{asked: asked, version: "v1.0.0", settled: true},
		},
		"a version with build metadata": {
			revisions(healthy(v1alpha2.LabelValue("v1.0.0+build"), asked)), asked, past{asked: asked},
		},
		"another request": {revisions(healthy("v1.0.0", asked)), later, past{asked: later}},
		"progressing": {
			revisions(healthy("v1.0.0", asked), progressing), asked,
			past{asked: automatic("v1.0.1"), version: "v1.0.1"},
		},
		"upgraded": {
			revisions(healthy("v1.0.0", asked), healthy("v1.0.1", automatic("v1.0.1"))), asked,
			past{asked: automatic("v1.0.1"), version: "v1.0.1", settled: true},
		},
		"failed, and still there": {
			revisions(healthy("v1.0.0", asked), failed("v1.0.1", automatic("v1.0.1"))), asked,
			past{asked: automatic("v1.0.1"), version: "v1.0.1"},
		},
		"rolled back": {
			revisions(healthy("v1.0.0", asked), failed("v1.0.1", automatic("v1.0.1")), rollback), asked,
			past{asked: asked, version: "v1.0.0", givenUp: []string{"v1.0.1"}},
		},
		"rolled back, and handled": {
			revisions(healthy("v1.0.0", asked), failed("v1.0.1", automatic("v1.0.1")), healthy("v1.0.0", asked)), asked,
			past{asked: asked, version: "v1.0.0", settled: true, givenUp: []string{"v1.0.1"}},
		},
		"rolled back to another automatic upgrade": {
			revisions(healthy("v1.0.1", automatic("v1.0.1")), failed("v1.0.2", automatic("v1.0.2")), rollback), asked,
			past{asked: automatic("v1.0.1"), version: "v1.0.1", givenUp: []string{"v1.0.2"}},
		},
		"the rollback failed": {
			revisions(healthy("v1.0.0", asked), failed("v1.0.1", automatic("v1.0.1")), failedRollback), asked,
			past{asked: automatic("v1.0.1"), version: "v1.0.1"},
		},
		"given up, and asked for again": {
			revisions(healthy("v1.0.0", asked), failed("v1.0.1", automatic("v1.0.1")), healthy("v1.0.0", later)), later,
			past{asked: later, version: "v1.0.0", settled: true},
		},
		"interrupted": {
			revisions(healthy("v1.0.0", asked), interrupted, healthy("v1.0.1", automatic("v1.0.1"))), asked,
			past{asked: automatic("v1.0.1"), version: "v1.0.1", settled: true},
		},
		"what a user asked for failed": {
			revisions(healthy("v1.0.0", asked), failed("v1.0.1", later), rollback), later,
			past{asked: later, version: "v1.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(examine(tt.history, tt.asked)).To(Equal(tt.want))
		})
	}

	foreign := revisions(healthy("v1.0.0", asked), others)
	foreign.Revisions[0].Origin = 1
	NewWithT(t).Expect(examine(foreign, asked)).To(Equal(past{asked: asked}), "helm rollback")
}

func TestLastUpgrade(t *testing.T) {
	g := NewWithT(t)
	upgraded := automatic("v1.0.1")
	rollback := state.Revision{Version: "v1.0.0", Status: state.StatusDeployed, RollbackTo: 1}
	none := v1alpha2.AutomaticUpgrade{}

	result := func(history state.History, before v1alpha2.AutomaticUpgrade) string {
		last := ptr.Deref(lastUpgrade(history, before, "Rollback to 1: not healthy"), none)
		return last.Version + " " + string(last.Result) + " " + last.Message
	}

	progressing := healthy("v1.0.1", upgraded)
	progressing.Healthy = false
	unavailable := failed("v1.0.1", upgraded)
	unavailable.Failure = state.FailureUnavailable

	first := healthy("v1.0.0", asked)
	g.Expect(lastUpgrade(revisions(first), none, "")).To(BeNil())
	g.Expect(result(revisions(first, progressing), none)).To(Equal("v1.0.1 Progressing "))
	g.Expect(result(revisions(first, unavailable), none)).To(Equal("v1.0.1 Progressing "))
	g.Expect(result(revisions(first, healthy("v1.0.1", upgraded)), none)).To(Equal("v1.0.1 Succeeded "))
	g.Expect(result(revisions(first, failed("v1.0.1", upgraded)), none)).To(Equal("v1.0.1 Failed "))
	g.Expect(result(revisions(first, failed("v1.0.1", upgraded), rollback), none)).To(Equal("v1.0.1 Failed not healthy"))
	g.Expect(result(revisions(first, progressing, healthy("v1.0.1", later)), none)).To(Equal("v1.0.1 Failed "),
		"replaced before it was healthy")

	rollback.Request = automatic("v1.0.0")
	g.Expect(result(revisions(first, failed("v1.0.1", upgraded), rollback), none)).To(Equal("v1.0.1 Failed not healthy"),
		"the rollback to an automatic upgrade is none")

	handled := revisions(first, healthy("v1.0.1", later))
	g.Expect(result(handled, v1alpha2.AutomaticUpgrade{Version: "v1.0.1", Revision: 2})).To(Equal("v1.0.1 Succeeded "),
		"a user has asked for something else, which the revision fulfills")
}
