package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxconditions "github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/removal"
)

// TestUninstalled: a removal searches for nothing only if the operator has uninstalled the release itself.
func TestUninstalled(t *testing.T) {
	gone := func(p *v1alpha2.InfrastructureProvider) {
		fluxconditions.MarkFalse(p, v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason, "gone")
	}

	for name, c := range map[string]struct {
		change func(*v1alpha2.InfrastructureProvider)
		want   bool
	}{
		"the release was uninstalled": {gone, true},
		"it has no records any more": {func(p *v1alpha2.InfrastructureProvider) {
			gone(p)
			p.Status.Release = &v1alpha2.ReleaseStatus{}
		}, false},
		"nor had a revision that was about to be created": {func(p *v1alpha2.InfrastructureProvider) {
			gone(p)
			p.Status.Objects = []string{"_x__Namespace_v1"}
		}, false},
		"it was never installed": {func(*v1alpha2.InfrastructureProvider) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{}
			c.change(p)

			r := &run{provider: p}
			NewWithT(t).Expect(r.uninstalled()).To(Equal(c.want))
		})
	}
}

// TestExpired: only a resource that is known to have installed nothing does not wait for its cluster.
func TestExpired(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v1alpha2.Provider)
		want   bool
	}{
		"it was never installed": {func(v1alpha2.Provider) {}, true},
		"it was deleted just now": {func(p v1alpha2.Provider) {
			p.SetDeletionTimestamp(new(metav1.Now()))
		}, false},
		"it was installed": {func(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} }, false},
		"it has lost its status": {func(p v1alpha2.Provider) {
			p.GetStatus().ObservedGeneration = -1
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestRun().provider
			p.SetFinalizers([]string{v1alpha2.Finalizer})
			p.SetDeletionTimestamp(new(metav1.NewTime(time.Now().Add(-time.Hour))))
			p.GetStatus().ObservedGeneration = 1
			c.change(p)

			r := &run{provider: p}
			NewWithT(t).Expect(r.expired()).To(Equal(c.want))
		})
	}
}

// TestNoteFound: what a removal has found is known to the next attempt, although this one was blocked.
func TestNoteFound(t *testing.T) {
	g := NewWithT(t)
	objects := []object.Key{{Namespace: "capa-system", Name: "found"}}

	r := newTestRun()
	r.provider.SetFinalizers([]string{v1alpha2.Finalizer})

	r.noteFound(removal.Found{})
	g.Expect(r.lost()).To(BeTrue())
	g.Expect(r.provider.GetStatus().Release).To(BeNil())

	newest := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 3, Status: v1alpha2.RevisionDeployed}}
	r.noteFound(removal.Found{Newest: newest, Objects: objects, Complete: true})
	g.Expect(r.lost()).To(BeFalse())
	g.Expect(r.provider.GetStatus().Release).To(HaveValue(Equal(v1alpha2.ReleaseStatus{
		Name: "infrastructure-aws", Namespace: "capa-system", Revision: 3, Status: v1alpha2.RevisionDeployed,
	})))

	blocked := r.report(Summary{Result: Result{Outcome: Stalled, Reason: v1alpha2.DeletionBlockedReason}}, now)
	g.Expect(blocked.Status.ObservedGeneration).To(Equal(r.provider.GetGeneration()))
	g.Expect(blocked.Status.Objects).To(Equal(object.Inventory(objects)))

	r.done.uninstalled = true
	g.Expect(r.report(Summary{}, now).Status).To(And(
		HaveField("Objects", BeEmpty()), HaveField("Release", BeNil())))
}
