package provider

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/health"
)

// TestLacksManager checks which steps of a staged revision a paused provider takes.
func TestLacksManager(t *testing.T) {
	for name, test := range map[string]struct {
		waiting  []asks.Held
		expected bool
	}{
		"a wave of other kinds, before one of own kinds": {[]asks.Held{{Place: 1}, {Place: 2, Own: true}}, false},
		"a wave of own kinds":                            {[]asks.Held{{Place: 2, Own: true}, {Place: 3}}, true},
		"deletions, of which some may have finalizers":   {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			run := newTestRun(revision(1, v1alpha2.RevisionDeployed, former))
			run.installed.waiting = test.waiting
			run.provider.GetSpec().Paused = true
			g.Expect(run.installed.needsPausedManager()).To(BeFalse(), "the revision is not paused")

			run.installed.Newest.Paused = true
			g.Expect(run.installed.needsPausedManager()).To(Equal(test.expected))
		})
	}
}

// TestProblemNamesCauses checks that objects which wait for others are named only if nothing else is the cause.
func TestProblemNamesCauses(t *testing.T) {
	g := NewWithT(t)
	gate := health.ObjectHealth{Object: manager, Result: health.Result{
		Status: status.InProgressStatus, Message: "Replicas: 0/1",
	}}
	waiting := []asks.Held{{Object: own, Place: asks.Order{}.Applied(true), Own: true}}
	run := newTestRun(revision(1, v1alpha2.RevisionDeployed, former))
	run.installed.waiting = waiting

	run.installed.health = &health.Report{Objects: withWaiting([]health.ObjectHealth{gate}, waiting)}
	g.Expect(run.installed.unhealthy()).To(Equal(gate.Describe("capa-system")))

	gate.Status = status.CurrentStatus
	run.installed.health = &health.Report{Objects: withWaiting([]health.ObjectHealth{gate}, waiting)}
	g.Expect(run.installed.unhealthy()).To(HaveSuffix("is applied once the provider's manager is healthy"))
}
