package foreign

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestIsRelease(t *testing.T) {
	byHelm := []state.Revision{{Number: 1, Status: state.StatusDeployed}}
	byCapstan := state.Revision{Number: 1, Origin: 1, Status: state.StatusSuperseded}
	app := &release.Record{ChartName: "web", ChartVersion: "1.0.0"}
	own := &release.Record{ChartName: "infrastructure-aws", Provider: "infrastructure-aws"}
	namesake := &release.Record{ChartName: "infrastructure-aws"}

	installed := func(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} }

	for name, c := range map[string]struct {
		revisions []state.Revision
		record    *release.Record
		change    func(p v1alpha2.Provider)
		want      bool
	}{
		"no release":                                {},
		"another chart":                             {revisions: byHelm, record: app, want: true},
		"a chart that only has the same name":       {revisions: byHelm, record: namesake, want: true},
		"a record that cannot be read":              {revisions: byHelm, want: true},
		"the provider's own chart":                  {revisions: byHelm, record: own},
		"an upgrade of Capstan's revision":          {revisions: []state.Revision{{Number: 2, Origin: 1}}, record: app},
		"a release with a revision of Capstan":      {revisions: append(byHelm, byCapstan), record: app},
		"another chart in place of the own release": {revisions: byHelm, record: app, change: installed, want: true},
		"the own chart, installed again":            {revisions: byHelm, record: own, change: installed},
		"an unreadable record of the own release":   {revisions: byHelm, change: installed},
		"a release that the user has allowed to be replaced": {
			revisions: byHelm, record: app,
			change: func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{}
			p.SetName("aws")

			if c.change != nil {
				c.change(p)
			}

			NewWithT(t).Expect(IsRelease(p, state.History{Revisions: c.revisions}, c.record)).To(Equal(c.want))
		})
	}
}

// TestConfirm: only digests that the status has, or a user who accepts any record, tell that a revision is the resource's.
func TestConfirm(t *testing.T) {
	self := state.Owner{Resource: "uid", Home: "berlin", Cluster: "berlin"}
	another := state.Owner{Resource: "another", Home: "berlin", Cluster: "berlin"}
	copied := self // any writer of Secrets can read the labels of a record, and copy them

	knows := func(number int64, digest string) func(v1alpha2.Provider) {
		return func(p v1alpha2.Provider) {
			status := p.GetStatus()
			status.Release = &v1alpha2.ReleaseStatus{}
			status.History = append(status.History, v1alpha2.ReleaseRevision{Revision: number, Digest: digest})
		}
	}
	announces := func(p v1alpha2.Provider) {
		p.GetStatus().Announced = &v1alpha2.AnnouncedRevision{Revision: 2, Digest: "v1:two"}
	}
	begins := func(p v1alpha2.Provider) { p.GetStatus().Announced = &v1alpha2.AnnouncedRevision{Revision: 2} }
	accepts := func(value string) func(v1alpha2.Provider) {
		return func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: value})
		}
	}
	all := func(changes ...func(v1alpha2.Provider)) func(v1alpha2.Provider) {
		return func(p v1alpha2.Provider) {
			for _, change := range changes {
				change(p)
			}
		}
	}

	for name, c := range map[string]struct {
		owner  state.Owner
		change func(p v1alpha2.Provider)
		want   bool
		newest int // that the resource has installed after it
	}{
		"a revision that the resource has installed":         {copied, knows(2, "v1:two"), true, 0},
		"one that the resource has begun to install":         {copied, announces, true, 0},
		"one before that, while CRDs are applied":            {copied, begins, false, 0},
		"one that is written again":                          {copied, all(knows(2, "v1:old"), announces), true, 0},
		"one after a restore, in a resource with its status": {another, knows(2, "v1:two"), true, 0},
		"one that was planted, or changed in place":          {copied, knows(2, "v1:other"), false, 0},
		"one that was planted after the last one":            {copied, knows(1, "v1:two"), false, 0},
		"one of a status without digests":                    {copied, knows(2, ""), false, 0},
		"one of a resource that has lost its status":         {copied, all(), false, 0},
		"one in another cluster":                             {state.Owner{Cluster: "bonn"}, knows(2, "v1:two"), false, 0},
		"one whose successors were deleted":                  {copied, all(knows(2, "v1:two"), knows(3, "v1:x")), false, 3},
		"any, accepted by a resource that knows none":        {state.Owner{}, accepts("true"), true, 0},
		"any, accepted by one that knows some":               {copied, all(knows(1, "v1:one"), accepts("true")), false, 0},
		"any, not accepted":                                  {copied, accepts("false"), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.InfrastructureProvider{}
			c.change(p)

			history := state.History{Revisions: []state.Revision{{Number: 2, Owner: c.owner}, {Number: 1}}}
			Confirm(p, self, history)

			ConfirmNewest(p, history, &release.Record{Digest: "v1:two"})

			newest := history.Revisions[0]
			g.Expect(newest.Confirmed()).To(Equal(c.want))
			g.Expect(newest.Confirm().Confirms("v1:two")).To(Equal(c.want))
			g.Expect(newest.Confirm().Confirms("v1:x")).To(BeFalse(), "a record that replaces the one that was read")

			if !c.want {
				g.Expect(Unconfirmed(p, history.Release, newest).Newest).To(Equal(c.newest))
			}
		})
	}
}

// TestMarks: what changes of a revision is what the status knows, and what the record claims if that knows nothing.
func TestMarks(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	p.GetStatus().History = []v1alpha2.ReleaseRevision{
		{Revision: 3, Digest: "v1:three", Status: "deployed", Healthy: new(false)},
		{Revision: 2, Digest: "v1:two", Healthy: new(true)},
		{Revision: 1},
	}

	forged := func(number int) state.Revision {
		return state.Revision{Number: number, Origin: number, Status: state.StatusFailed, Failure: state.FailureFinal}
	}
	history := state.History{Revisions: []state.Revision{forged(3), forged(2), forged(1)}}

	Confirm(p, state.Owner{}, history)
	ConfirmNewest(p, history, &release.Record{Digest: "v1:three"})

	g.Expect(history.Revisions[0]).To(And(HaveField("Status", state.StatusDeployed), HaveField("Failure", BeEmpty())))
	g.Expect(history.Revisions[1]).To(And(HaveField("Healthy", true), HaveField("Failure", state.FailureInterrupted)))
	g.Expect(history.Revisions[2]).To(Equal(forged(1)), "it is shown, and never acted on")
}
