package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestClaims(t *testing.T) {
	resource := func(uid, namespace, name string) *v1alpha2.InfrastructureProvider {
		p := &v1alpha2.InfrastructureProvider{}
		p.SetUID(types.UID(uid))
		p.SetNamespace(namespace)
		p.SetName(name)

		return p
	}
	remote := resource("e", "b", "aws")
	remote.Spec.KubeConfig = &v1alpha2.KubeConfig{}

	g := NewWithT(t)
	claims := &claims{}
	first, second := resource("a", "a", "aws"), resource("b", "b", "aws")

	g.Expect(claims.take(first)).To(BeTrue())
	g.Expect(claims.take(first)).To(BeTrue(), "it has the claim already")
	g.Expect(claims.take(second)).To(BeFalse(), "the first one installs the provider")
	g.Expect(claims.take(resource("c", "a", "azure"))).To(BeTrue(), "another provider")
	g.Expect(claims.take(&v1alpha2.BootstrapProvider{ObjectMeta: second.ObjectMeta})).To(BeTrue(), "another kind")
	g.Expect(claims.take(remote)).To(BeTrue(), "another cluster")

	claims.release(second)
	g.Expect(claims.take(second)).To(BeFalse(), "a claim is released by its holder only")

	claims.release(first)
	g.Expect(claims.take(second)).To(BeTrue())
}

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
