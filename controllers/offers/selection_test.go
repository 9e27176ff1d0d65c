package offers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestLastUpgradeThatTheStatusKnows(t *testing.T) {
	g := NewWithT(t)
	rollback := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Version: "v1.0.0", Status: v1alpha2.RevisionDeployed, RollbackTo: 1,
		},
	}
	first := healthyAt("v1.0.0", asks)

	var shown *v1alpha2.AutomaticUpgradeStatus

	last := func(history state.History) *v1alpha2.AutomaticUpgrade {
		return LastUpgrade(shown, history, "Rollback to 1: not healthy")
	}

	g.Expect(last(historyOf(first))).To(BeNil())

	attempt := last(historyOf(first, failedAt("v1.0.1", automatic("v1.0.1"))))
	g.Expect(attempt).To(And(HaveField("Result", v1alpha2.UpgradeFailed), HaveField("Message", "")), "not rolled back yet")

	givenUp := last(historyOf(first, failedAt("v1.0.1", automatic("v1.0.1")), rollback))
	g.Expect(givenUp).To(HaveField("Message", "not healthy"))

	shown = &v1alpha2.AutomaticUpgradeStatus{Last: givenUp}

	next := last(historyOf(first,
		failedAt("v1.0.1", automatic("v1.0.1")), rollback, failedAt("v1.0.2", automatic("v1.0.2")), rollback))
	g.Expect(next).To(HaveField("Version", "v1.0.2"), "another one, within one reconcile")
}

func TestSelectionIsDescribed(t *testing.T) {
	g := NewWithT(t)
	selection := Selection{Version: "v1.13.5", From: "v1.13.4"}
	g.Expect(selection.String()).To(Equal("Upgrading from v1.13.4 to v1.13.5"))

	selection.Until = time.Date(2026, 11, 22, 5, 0, 0, 0, time.FixedZone("", 3600))
	g.Expect(selection.String()).To(Equal(
		"Upgrading from v1.13.4 to v1.13.5, within the window until 2026-11-22 04:00 UTC"))
}
