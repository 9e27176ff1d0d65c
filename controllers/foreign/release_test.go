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
	installedPlain := func(p v1alpha2.Provider) {
		installed(p)

		p.GetStatus().Chart = &v1alpha2.ChartStatus{Name: "web", Plain: true}
	}

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
		"the own plain chart, installed again":      {revisions: byHelm, record: app, change: installedPlain},
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

func TestConfirm(t *testing.T) {
	self := state.Owner{Resource: "uid", Home: "berlin", Cluster: "berlin"}
	installed := func(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} }
	installing := func(p v1alpha2.Provider) { p.GetStatus().Announced = &v1alpha2.AnnouncedRevision{} }
	adopting := func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"})
	}

	for name, c := range map[string]struct {
		owner  state.Owner
		change func(p v1alpha2.Provider)
		want   bool
	}{
		"a revision that the resource has installed":  {self, installed, true},
		"one that the resource has begun to install":  {self, installing, true},
		"one of a resource that has lost its status":  {self, func(v1alpha2.Provider) {}, false},
		"one of an earlier resource of the same name": {state.Owner{Resource: "earlier", Home: "berlin"}, installed, false},
		"one without an owner":                        {state.Owner{}, installed, false},
		"one that the user has adopted":               {state.Owner{}, adopting, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{}
			c.change(p)

			history := state.History{Revisions: []state.Revision{{Number: 2, Owner: c.owner}, {Number: 1}}}
			Confirm(p, self, history)

			NewWithT(t).Expect(history.Revisions[0].Confirmed).To(Equal(c.want))
		})
	}
}
