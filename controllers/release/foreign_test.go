package release_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// revisionOf returns a revision as it is stored, with the number that the label of its record has.
func revisionOf(number, origin int) state.Revision {
	return state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: number}, Origin: origin}
}

func TestIsForeign(t *testing.T) {
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

			NewWithT(t).Expect(release.IsForeign(p, state.History{Revisions: c.revisions}, c.record)).To(Equal(c.want))
		})
	}
}

// TestMissingNewest: a later revision than one that is not known to be the resource's is named.
func TestMissingNewest(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 3, Digest: "v1:x"}}

	g.Expect(release.MissingNewest(p, revisionOf(2, 0))).To(Equal(3))
	g.Expect(release.MissingNewest(p, revisionOf(4, 0))).To(BeZero())
}

// records are what Helm's storage has of revisions.
type records map[int]*release.Record

func (r records) Read(_ context.Context, _ types.NamespacedName, revision state.Revision) (*release.Record, error) {
	if record, readable := r[revision.Number]; readable {
		return record, nil
	}

	return nil, &storage.CorruptError{}
}

// TestOwnerOf: the owner of a release is known although another program has made its newest revision.
func TestOwnerOf(t *testing.T) {
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
			owner, err := release.OwnerOf(t.Context(), c.older.Read, state.History{Revisions: c.revisions}, c.newest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(owner.Resource).To(Equal(c.want))
		})
	}
}
