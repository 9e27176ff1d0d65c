package facts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/values"
)

// planned returns a plan with a new password in every place.
func planned(t *testing.T) *plan.Preview {
	t.Helper()

	return &plan.Preview{
		Plan: plan.Plan{Version: "v3.0.0", Warnings: values.Warnings{
			Ignored: []string{"spec.manager has no effect"},
		}},
		Rendered: &release.Record{
			AppVersion: "v3.0.0",
			Values:     map[string]any{"variables": map[string]any{"PASSWORD": "n3xt-" + secretValue}},
			Objects: []*unstructured.Unstructured{
				deployment(t, "--password=n3xt-"+secretValue),
				manifest(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: new}, data: {a: n3xt-`+secretValue+`}}`),
			},
		},
		NewCRDs:        []string{"new.example.com"},
		ChangedCRDs:    []string{"old.example.com"},
		CRDDifferences: []crds.Difference{{Name: "old.example.com", Fields: []string{"/spec/scope"}}},
	}
}

// TestCompareUpgrade checks that an upgrade is compared with the newest revision, without values of variables and
// Secrets.
func TestCompareUpgrade(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	withReleases(t, reader)

	report := &safety.Report{Findings: []safety.Finding{
		{Level: safety.Info, CRD: "old.example.com", Message: "has a new storage version"},
		{Level: safety.Warning, CRD: "old.example.com", Message: "a default changes"},
		{Level: safety.Error, CRD: "old.example.com", Message: "the scope changes"},
	}}

	c, err := reader.CompareUpgrade(t.Context(), p, planned(t), report)
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect([]string{c.From, c.To}).To(Equal([]string{"v2.0.0", "v3.0.0"}))
	g.Expect(c.Changes).To(HaveExactElements(
		And(HaveField("Object", "Deployment capa-system/manager"),
			HaveField("Diff", ContainSubstring("--password=<masked PASSWORD, changed>"))),
		And(HaveField("Object", "ConfigMap new"), HaveField("Kind", objectdiff.Created)),
		And(HaveField("Object", "Secret capa-system/other"), HaveField("Kind", objectdiff.Deleted)),
	))
	g.Expect(c.CRDs).To(HaveExactElements(
		facts.CRDChange{Name: "new.example.com", Created: true},
		facts.CRDChange{Name: "old.example.com", Fields: []string{"/spec/scope"}},
	))
	g.Expect(c.Findings).To(HaveExactElements(
		facts.CRDFinding{Level: "Error", CRD: "old.example.com", Text: "old.example.com: the scope changes"},
		facts.CRDFinding{Level: "Warning", CRD: "old.example.com", Text: "old.example.com: a default changes"},
	))
	g.Expect(c.Warnings).To(HaveExactElements("spec.manager has no effect"))
}

// TestCompareUpgradeWithoutContents checks what is not compared: contents that may have values which are recorded
// nowhere, and releases in other clusters.
func TestCompareUpgradeWithoutContents(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	withReleases(t, reader)

	p.GetSpec().AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "more"}

	preview := planned(t)
	preview.Rendered.Values = nil

	c, err := reader.CompareUpgrade(t.Context(), p, preview, nil)
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect(c.Withheld).NotTo(BeEmpty())
	g.Expect(c.Changes).To(HaveLen(3))

	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
	_, err = reader.CompareUpgrade(t.Context(), p, preview, nil)
	g.Expect(err).To(MatchError(ContainSubstring("is in another cluster")))
}

// TestCompareUpgradeWithoutRelease checks that everything is new if nothing is installed.
func TestCompareUpgradeWithoutRelease(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	withReleases(t, reader).revisions = nil

	c, err := reader.CompareUpgrade(t.Context(), p, planned(t), nil)
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect(c.Changes).To(HaveEach(HaveField("Kind", objectdiff.Created)))
}
