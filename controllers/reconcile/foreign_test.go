package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestBelongsToOthers(t *testing.T) {
	byHelm := state.Revision{Number: 1, Status: state.StatusDeployed}
	app := &release.Record{ChartName: "web", ChartVersion: "1.0.0"}
	own := &release.Record{ChartName: "infrastructure-aws", Provider: "infrastructure-aws"}
	namesake := &release.Record{ChartName: "infrastructure-aws"}

	for name, c := range map[string]struct {
		revisions []state.Revision
		record    *release.Record
		change    func(p v1alpha2.Provider)
		want      bool
	}{
		"a release of another chart":           {revisions: []state.Revision{byHelm}, record: app, want: true},
		"a chart that only has the same name":  {revisions: []state.Revision{byHelm}, record: namesake, want: true},
		"a record that cannot be read":         {revisions: []state.Revision{byHelm}, want: true},
		"the provider's own chart":             {revisions: []state.Revision{byHelm}, record: own},
		"an upgrade of Capstan's revision":     {revisions: []state.Revision{{Number: 2, Origin: 1}}, record: app},
		"a release with a revision of Capstan": {revisions: []state.Revision{byHelm, revision(1, "", "")}, record: app},
		"a release that the resource is known to have": {
			revisions: []state.Revision{byHelm}, record: app,
			change: func(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} },
		},
		"a release that the user has allowed to be replaced": {
			revisions: []state.Revision{byHelm}, record: app,
			change: func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(c.revisions...)
			if c.change != nil {
				c.change(r.provider)
			}

			NewWithT(t).Expect(r.belongsToOthers(c.record)).To(Equal(c.want))
		})
	}
}
