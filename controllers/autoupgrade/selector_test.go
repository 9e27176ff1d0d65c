package autoupgrade

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestLastUpgradeThatTheStatusKnows(t *testing.T) {
	g := NewWithT(t)
	rollback := state.Revision{Version: "v1.0.0", Status: state.StatusDeployed, RollbackTo: 1}
	first := healthy("v1.0.0", asked)
	status := &v1alpha2.ProviderStatus{}

	last := func(history state.History) *v1alpha2.AutomaticUpgrade {
		return Last(status, Installed{History: history, Description: "Rollback to 1: not healthy"})
	}

	g.Expect(last(revisions(first))).To(BeNil())

	attempt := last(revisions(first, failed("v1.0.1", automatic("v1.0.1"))))
	g.Expect(attempt).To(And(HaveField("Result", v1alpha2.UpgradeFailed), HaveField("Message", "")), "not rolled back yet")

	givenUp := last(revisions(first, failed("v1.0.1", automatic("v1.0.1")), rollback))
	g.Expect(givenUp).To(HaveField("Message", "not healthy"))

	status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Last: givenUp}

	next := last(revisions(first,
		failed("v1.0.1", automatic("v1.0.1")), rollback, failed("v1.0.2", automatic("v1.0.2")), rollback))
	g.Expect(next).To(HaveField("Version", "v1.0.2"), "another one, within one reconcile")
}

func TestNothingPendsWithoutAPolicy(t *testing.T) {
	selection, err := (&Selector{}).Select(t.Context(), &v1alpha2.InfrastructureProvider{}, Installed{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(selection).To(BeZero())
}

func TestOneUpgradeStartsAtATime(t *testing.T) {
	g := NewWithT(t)
	selector := &Selector{Cluster: func(p v1alpha2.Provider) string { return p.GetNamespace() }}
	provider := func(cluster string, uid types.UID) v1alpha2.Provider {
		return &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, UID: uid}}
	}

	one, two, elsewhere := provider("here", "one"), provider("here", "two"), provider("there", "three")

	g.Expect(selector.take(one)).To(BeTrue())
	g.Expect(selector.take(one)).To(BeTrue(), "it has it already")
	g.Expect(selector.take(two)).To(BeFalse())
	g.Expect(selector.take(elsewhere)).To(BeTrue(), "another cluster")

	selector.Release(one.GetUID())
	g.Expect(selector.take(two)).To(BeTrue())
}

func TestSelectionIsChecked(t *testing.T) {
	g := NewWithT(t)
	selection := Selection{Version: "v1.13.5", From: "v1.13.4"}
	g.Expect(selection.Check("v1.13.5", "v1beta1", "v1beta1")).To(Succeed())
	g.Expect(selection.Check("v1.14.0", "v1beta1", "v1beta1")).To(MatchError(ContainSubstring("now has v1.14.0")))
	g.Expect(selection.Check("v1.13.5", "v1beta2", "v1beta1")).To(MatchError(ContainSubstring("now has v1.13.5 with the " +
		"contract v1beta2")))
}

func TestSelectionIsDescribed(t *testing.T) {
	g := NewWithT(t)
	selection := Selection{Version: "v1.13.5", From: "v1.13.4"}
	g.Expect(selection.String()).To(Equal("v1.13.4 → v1.13.5"))

	selection.Until = time.Date(2026, 11, 22, 5, 0, 0, 0, time.FixedZone("", 3600))
	g.Expect(selection.String()).To(Equal("v1.13.4 → v1.13.5, within the window until 2026-11-22 04:00 UTC"))
}
