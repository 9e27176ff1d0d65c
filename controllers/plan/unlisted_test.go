package plan

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestUnlistedTemplates checks that a chart without all cluster templates is used as it is until the
// resource changes, and is then completed.
func TestUnlistedTemplates(t *testing.T) {
	g := NewWithT(t)
	server, p := publish(t)
	p.Spec.FetchConfig.HTTP = ""
	p.Spec.FetchConfig.URL = server.URL() + "/owner/docker/releases"
	c := writableClient()

	server.Limited.Store(true)

	planner := newPlanner(c)
	plan := func() *Chart {
		t.Helper()

		planned, err := planner.Plan(t.Context(), Request{Provider: p, Scope: c})
		g.Expect(err).NotTo(HaveOccurred())

		return planned.Chart
	}

	incomplete := plan()
	g.Expect(incomplete.NewWithUnlistedTemplates()).To(BeTrue())

	_, err := planner.Charts.Save(t.Context(), p, incomplete)
	g.Expect(err).NotTo(HaveOccurred())

	p.Status.StoredCharts = incomplete.Records(&p.Status)
	p.Status.Chart = incomplete.Status(nil)

	server.Limited.Store(false)

	requests := len(server.Requests("/"))

	for range 2 {
		g.Expect(plan().Digest).To(Equal(incomplete.Digest))
		g.Expect(plan().NewWithUnlistedTemplates()).To(BeFalse(), "it is reported once")

		planner = newPlanner(c)
	}

	g.Expect(server.Requests("/")).To(HaveLen(requests), "nothing is asked for, not even after a restart")

	p.Generation++
	complete := plan()
	g.Expect(complete.Digest).NotTo(Equal(incomplete.Digest))
	g.Expect(complete.NewWithUnlistedTemplates()).To(BeFalse())
}
