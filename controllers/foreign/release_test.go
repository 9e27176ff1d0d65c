package foreign

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

func TestIsRelease(t *testing.T) {
	byHelm := []state.Revision{{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionDeployed}}}
	byCapstan := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionSuperseded}, Origin: 1,
	}
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
		"an upgrade of Capstan's revision":          {revisions: []state.Revision{revisionOf(2, 1)}, record: app},
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

// revisionOf returns a revision as it is stored, with the number that the label of its record has.
func revisionOf(number, origin int) state.Revision {
	return state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: number}, Origin: origin}
}

// TestConfirm: only digests that the status has tell that a revision is the resource's.
func TestConfirm(t *testing.T) {
	self := state.Owner{Resource: "uid", Home: "berlin", Cluster: "berlin"}
	another := state.Owner{Resource: "another", Home: "berlin", Cluster: "berlin"}
	copied := self // any writer of Secrets can read a record, and copy it

	knows := func(number int, digest string) func(v1alpha2.Provider) {
		return func(p v1alpha2.Provider) {
			status := p.GetStatus()
			status.Release = &v1alpha2.ReleaseStatus{}
			entry := v1alpha2.ReleaseRevision{Number: number, Digest: digest}
			status.History = slices.Insert(status.History, 0, entry)
		}
	}
	enters := func(number int, digest string) func(v1alpha2.Provider) {
		return func(p v1alpha2.Provider) {
			revision := state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: number, Status: v1alpha2.RevisionPendingUpgrade, Digest: digest,
				},
			}
			state.Enter(p.GetStatus(), revision)
		}
	}
	begins := func(p v1alpha2.Provider) { state.Begin(p.GetStatus(), false, 2, "v1.0.0") }
	adopts := func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
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
		"one that the resource has begun to install":         {copied, enters(2, "v1:two"), true, 0},
		"one before another one that was only entered":       {copied, all(knows(2, "v1:two"), enters(3, "v1:x")), true, 0},
		"one before that, while CRDs are applied":            {copied, begins, false, 0},
		"one that is written again":                          {copied, all(knows(2, "v1:old"), enters(2, "v1:two")), true, 0},
		"one after a restore, in a resource with its status": {another, knows(2, "v1:two"), true, 0},
		"one that was planted, or changed in place":          {copied, knows(2, "v1:other"), false, 0},
		"one that was planted after the last one":            {copied, knows(1, "v1:two"), false, 0},
		"one of a status without digests":                    {copied, knows(2, ""), false, 0},
		"one of a resource that has lost its status":         {copied, all(), false, 0},
		"one in another cluster":                             {state.Owner{Cluster: "bonn"}, knows(2, "v1:two"), false, 0},
		"one whose successors were deleted":                  {copied, all(knows(2, "v1:two"), knows(3, "v1:x")), false, 3},
		"one of a release that is taken over":                {state.Owner{}, adopts, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.InfrastructureProvider{}
			c.change(p)

			history := state.History{Revisions: []state.Revision{revisionOf(2, 0), revisionOf(1, 0)}}
			history = Confirm(p, history)

			ConfirmNewest(p, self, history, &release.Record{Digest: "v1:two", Owner: c.owner})

			newest := history.Revisions[0]
			g.Expect(newest.Confirmed()).To(Equal(c.want))
			g.Expect(newest.Confirms("v1:two")).To(Equal(c.want))
			g.Expect(newest.Confirms("v1:x")).To(BeFalse(), "a record that replaces the one that was read")

			if !c.want {
				g.Expect(Unconfirmed(p, history.Release, newest).Newest).To(Equal(c.newest))
			}
		})
	}
}

// TestKnownRevisions: what the status knows of a revision counts, whatever its record says.
func TestKnownRevisions(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	p.GetStatus().History = []v1alpha2.ReleaseRevision{
		{Number: 4, Digest: "v1:four", Status: "deployed", ContentDigest: "v1-x"},
		{Number: 3, Digest: "v1:three", Status: "pending-upgrade", ContentDigest: "v1-x"},
		{Number: 2, Digest: "v1:two", Healthy: true, Version: "v1.0.0"},
		{Number: 1},
	}

	stored := func(number, origin int) state.Revision {
		return state.Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{Number: number, Status: v1alpha2.RevisionFailed},
			Origin:          origin,
		}
	}
	revisions := []state.Revision{stored(4, 4), stored(3, 2), stored(2, 2), stored(1, 1)}
	history := state.History{Revisions: slices.Clone(revisions)}

	history = Confirm(p, history)
	ConfirmNewest(p, state.Owner{}, history, &release.Record{Digest: "v1:four"})

	g.Expect(history.Revisions[0]).To(And(
		HaveField("Status", v1alpha2.RevisionDeployed), HaveField("ContentDigest", "v1-x")))
	g.Expect(history.Revisions[1]).To(Equal(stored(3, 2)), "another program has made it in place of one that was entered")
	g.Expect(history.Revisions[2]).To(And(HaveField("Healthy", true), HaveField("Failure", v1alpha2.FailureInterrupted)))
	g.Expect(history.Revisions[3]).To(Equal(stored(1, 1)), "it is shown, and never acted on")

	shown := state.History{Revisions: revisions}
	shown = Show(p, shown)
	g.Expect(shown.Revisions[0].ContentDigest).To(Equal("v1-x"))
	g.Expect(shown.Revisions[1]).To(Equal(stored(3, 2)))
	g.Expect(shown.Revisions[2].Version).To(Equal("v1.0.0"))
}

// records are what Helm's storage has of revisions.
type records map[int]*release.Record

func (r records) Read(_ context.Context, _ types.NamespacedName, revision state.Revision) (*release.Record, error) {
	if record, readable := r[revision.Number]; readable {
		return record, nil
	}

	return nil, &storage.CorruptError{}
}

// TestOwner: the owner of a release is known although another program has made its newest revision.
func TestOwner(t *testing.T) {
	owned := &release.Record{Owner: state.Owner{Resource: "uid"}}
	byHelm := &release.Record{}
	ours, helms := revisionOf(1, 1), revisionOf(2, 1)

	for name, c := range map[string]struct {
		revisions []state.Revision
		newest    *release.Record
		older     records
		want      types.UID
	}{
		"the newest revision":          {[]state.Revision{ours}, owned, nil, "uid"},
		"the one before that":          {[]state.Revision{helms, ours}, byHelm, records{1: owned}, "uid"},
		"one before an unreadable one": {[]state.Revision{revisionOf(2, 2), ours}, nil, records{1: owned}, "uid"},
		"a release of another program": {
			[]state.Revision{revisionOf(2, 0), revisionOf(1, 0)}, byHelm, records{1: owned}, "",
		},
		"a release without readable ones": {[]state.Revision{helms, ours}, byHelm, records{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			owner, err := Owner(t.Context(), c.older, state.History{Revisions: c.revisions}, c.newest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(owner.Resource).To(Equal(c.want))
		})
	}
}
