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

func TestReport(t *testing.T) {
	g := NewWithT(t)
	selector := &Selector{}
	provider := &v1alpha2.InfrastructureProvider{}
	rollback := state.Revision{Version: "v1.0.0", Status: state.StatusDeployed, RollbackTo: 1}
	first := healthy("v1.0.0", asked)

	report := func(history state.History) []string {
		return Report(provider, Installed{History: history, Description: "Rollback to 1: not healthy"})
	}

	g.Expect(report(revisions(first))).To(BeEmpty())
	g.Expect(provider.Status.AutomaticUpgrade).To(BeNil())

	g.Expect(report(revisions(first, failed("v1.0.1", automatic("v1.0.1"))))).To(BeEmpty(), "not rolled back yet")
	g.Expect(provider.Status.AutomaticUpgrade.Last.Result).To(Equal(v1alpha2.UpgradeFailed))

	givenUp := revisions(first, failed("v1.0.1", automatic("v1.0.1")), rollback)
	g.Expect(report(givenUp)).To(ConsistOf(HavePrefix("v1.0.1: not healthy; it is not tried again until")))
	g.Expect(report(givenUp)).To(BeEmpty(), "it was reported before")

	next := revisions(first,
		failed("v1.0.1", automatic("v1.0.1")), rollback, failed("v1.0.2", automatic("v1.0.2")), rollback)
	g.Expect(report(next)).To(ConsistOf(HavePrefix("v1.0.2: ")), "another one, within one reconcile")

	provider.Status.AutomaticUpgrade.Last = nil

	g.Expect(report(givenUp)).NotTo(BeEmpty(), "the status was lost")

	provider.Status.AutomaticUpgrade.Pending = &v1alpha2.PendingUpgrade{Version: "v1.0.2"}
	selection, err := selector.Select(t.Context(), provider, Installed{History: givenUp})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selection).To(BeZero(), "there is no policy any more")
	g.Expect(provider.Status.AutomaticUpgrade.Pending).To(BeNil())
	g.Expect(report(givenUp)).To(BeEmpty(), "it was reported before")
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
