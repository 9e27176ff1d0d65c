package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/capstan-project/capstan/api/v1alpha2"
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
			r.installed.owner = owner
			r.self = state.Owner{Resource: "b", Home: c.home, Cluster: "berlin"}

			if c.change != nil {
				c.change(r.provider)
			}

			err := r.checkOwner(r.installed.record)
			if c.refused {
				g.Expect(err).To(BeAssignableToTypeOf(&ownedError{}))
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
