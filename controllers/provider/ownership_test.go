package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestCheckOwner(t *testing.T) {
	owner := state.Owner{Resource: "a", Home: "berlin", Cluster: "berlin"}
	installed := func(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} }
	adopting := func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
	}

	for name, c := range map[string]struct {
		home      types.UID
		change    func(p v1alpha2.Provider)
		refused   bool
		takesOver bool
	}{
		"its own release":            {home: "berlin"},
		"that of another cluster":    {home: "hub", refused: true},
		"one that was taken over":    {home: "hub", change: installed, refused: true},
		"one that it may take over":  {home: "hub", change: adopting, takesOver: true},
		"one that it need not adopt": {home: "berlin", change: adopting},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.installed.Owner = owner
			r.self = state.Owner{Resource: "b", Home: c.home, Cluster: "berlin"}

			if c.change != nil {
				c.change(r.provider)
			}

			err := r.checkOwner()
			if c.refused {
				g.Expect(err).To(Equal(ownedProblem("capa-system/infrastructure-aws")))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.ownedElsewhere()).To(Equal(c.takesOver))
		})
	}
}

func TestLeaveFormerCluster(t *testing.T) {
	for name, c := range map[string]struct {
		former string
		now    types.UID
		left   bool
	}{
		"the same cluster":              {former: "berlin", now: "berlin"},
		"another one":                   {former: "berlin", now: "paris", left: true},
		"one that was not recorded":     {now: "paris"},
		"one that cannot be identified": {former: "berlin"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(1)
			r := &Reconciler{Dependencies: &Dependencies{Events: recorder}}
			p := newTestRun().provider
			p.GetStatus().Release = &v1alpha2.ReleaseStatus{ClusterUID: c.former}

			r.leaveFormerCluster(p, c.now)
			g.Expect(p.GetStatus().Release == nil).To(Equal(c.left))

			if c.left {
				g.Expect(recorder.Events).To(Receive(ContainSubstring("has the UID berlin")))
			}
		})
	}
}

// TestLostStatus: a status that was lost remains so, whatever else a reconcile reports, until all objects of the
// release are known, which are then in its inventory.
func TestLostStatus(t *testing.T) {
	found := []object.Key{{Namespace: "capa-system", Name: "found"}}
	managed := []string{v1alpha2.Finalizer}

	for name, c := range map[string]struct {
		finalizers []string
		observed   int64
		reach      func(*run)
		lost       bool
		inventory  int
	}{
		"a reconcile that ended before it searched": {
			finalizers: managed, observed: -1, reach: func(*run) {}, lost: true,
		},
		"one whose status the API server has not even begun": {finalizers: managed, reach: func(*run) {}, lost: true},
		"one that has found a part": {
			finalizers: managed, observed: -1, reach: func(r *run) { r.found = found }, lost: true, inventory: 1,
		},
		"one that has found all": {
			finalizers: managed, observed: -1, reach: func(r *run) { r.found, r.searched = found, true }, inventory: 1,
		},
		"the first one": {
			finalizers: managed, observed: -1, reach: func(r *run) { r.added = true },
		},
		"a resource that was never the operator's": {observed: -1, reach: func(*run) {}},
		"a status that was not lost":               {finalizers: managed, observed: 1, reach: func(*run) {}},
		"one without what another program has made": {
			finalizers: managed, observed: 1, reach: func(r *run) { r.unfound = &apply.UnlistedError{} }, lost: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun()
			r.provider.SetFinalizers(c.finalizers)
			r.provider.GetStatus().ObservedGeneration = c.observed
			r.memory.searching(3)
			c.reach(r)

			report := r.report(Summary{Result: Result{Outcome: Stalled, Reason: "Some"}}, time.Now())
			g.Expect(report.Status.Objects).To(HaveLen(c.inventory))

			if !c.lost {
				g.Expect(report.Status.ObservedGeneration).To(Equal(r.provider.GetGeneration()))
				return
			}

			g.Expect(report.Status.ObservedGeneration).To(BeEquivalentTo(-1))
		})
	}
}

// TestSearchesAreRemembered: a search is continued unless it was complete, or another program has made a revision
// since.
func TestSearchesAreRemembered(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun()
	r.provider.SetFinalizers([]string{v1alpha2.Finalizer})

	search := r.memory.searching(2)
	r.remember(Waiting)
	g.Expect(r.memory.unsettled).To(Equal(r.provider.GetGeneration()))
	g.Expect(r.memory.searching(2)).To(BeIdenticalTo(search))
	g.Expect(r.memory.searching(3)).NotTo(BeIdenticalTo(search))

	r.searched = true
	r.remember(Waiting)
	g.Expect(r.memory.unsettled).To(BeZero())
	g.Expect(r.memory.search).To(BeNil())
}
