package view_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// manifest parses a YAML document.
func manifest(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(document))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(o.UnmarshalJSON(data)).To(Succeed())

	return o
}

// deployment returns a Deployment whose manager has an argument.
func deployment(t *testing.T, argument string) *unstructured.Unstructured {
	t.Helper()

	return manifest(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: capa-system}, spec: {
		replicas: 1, paused: false, template: {metadata: {creationTimestamp: null}, spec: {containers: [{name: manager,
		args: [--verbose, "`+argument+`"], resources: {limits: {cpu: 1000m, memory: 1}}}]}}}}`)
}

func credentials(t *testing.T, value string) *unstructured.Unstructured {
	t.Helper()

	return manifest(t, `{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: capa-system},
		stringData: {password: "`+value+`"}}`)
}

// withReleases makes a reader read two revisions that have secrets in every place. The second is the newest.
func withReleases(t *testing.T, reader *view.Reader) *memory {
	t.Helper()

	values := func(password string) map[string]any {
		return map[string]any{"variables": map[string]any{"PASSWORD": password, "REGION": "eu-north-1"}}
	}
	made := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Request: v1alpha2.RevisionRequest{UID: "uid", Generation: 1},
		},
	}
	first, second := made, made
	first.Number, first.Origin = 1, 1
	second.Number, second.Origin = 2, 2

	m := &memory{
		revisions: []state.Revision{second, first},
		records: map[int]*release.Record{
			1: {AppVersion: "v1.0.0", Values: values("0ld-" + secretValue), Objects: []*unstructured.Unstructured{
				deployment(t, "--password=0ld-"+secretValue), credentials(t, "0ld-"+secretValue),
			}},
			2: {AppVersion: "v2.0.0", Values: values("n3w-" + secretValue), Objects: []*unstructured.Unstructured{
				deployment(t, "--password=n3w-"+secretValue), credentials(t, "n3w-"+secretValue),
			}},
		},
	}
	reader.Releases = m

	return m
}

// TestCompareWithPlan: a plan shows no more than a revision.
func TestCompareWithPlan(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	releases := withReleases(t, reader)
	p.GetSpec().Variables = map[string]string{"REGION": "eu-north-1"}

	history := state.History{Revisions: releases.revisions[1:]}

	c, err := view.CompareWithPlan(p, history, releases.records[1], releases.records[2])
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect(c.Changes).To(HaveLen(2))
	g.Expect(c.Changes[0].Diff).To(ContainSubstring("--password=<masked PASSWORD, changed>"))

	releases.records[1].Values = map[string]any{"auth": map[string]any{"password": "0ld-" + secretValue}}
	history.Revisions[0].Origin = 0
	c, err = view.CompareWithPlan(p, history, releases.records[1], releases.records[2])
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect(c.Changes[0].Diff).To(ContainSubstring("--password=<masked value.auth.password>"), "of another program")

	masked := view.Masker(p, releases.records[2]).Objects(releases.records[2].Objects)
	c.Changes, err = objectdiff.Compare(nil, masked, 3)
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
}

// expectNoSecrets checks that no value of a Secret or of a variable is in a comparison, in any form.
func expectNoSecrets(t *testing.T, c view.Comparison) {
	t.Helper()

	data, err := json.Marshal(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(data)).NotTo(Or(
		ContainSubstring(secretValue), ContainSubstring("MGxk"), ContainSubstring("bjN3"), ContainSubstring("czNjcjN0")))
}

func TestCompareRevisions(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	releases := withReleases(t, reader)
	p.GetSpec().Variables = map[string]string{"REGION": "eu-north-1"}

	releases.records[2].Objects[0].SetLabels(map[string]string{"region": "eu-north-1"})

	c, err := reader.Compare(t.Context(), p, view.Sides{From: 1, To: 2})
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect(c.From).To(Equal("v1.0.0"))
	g.Expect(c.To).To(Equal("v2.0.0"))
	g.Expect(c.Withheld).To(BeEmpty())
	g.Expect(c.Changes).To(HaveExactElements(
		And(
			HaveField("Object", "Deployment capa-system/manager"),
			HaveField("Diff", And(
				ContainSubstring("-        - --password=<masked PASSWORD>\n+        - --password=<masked PASSWORD, changed>\n"),
				ContainSubstring("+    region: eu-north-1\n"), // which the resource contains
			)),
		),
		And(
			HaveField("Object", "Secret capa-system/other"),
			HaveField("Diff", ContainSubstring("+  password: <masked 16 bytes, changed>\n")),
		),
	))

	c, err = reader.Compare(t.Context(), p, view.Sides{From: 2})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Changes).To(BeEmpty(), "the newest revision with itself")

	_, err = reader.Compare(t.Context(), p, view.Sides{From: 9, To: 2})
	g.Expect(err).To(MatchError(HaveSuffix("has no revision 9; `capstan history " + v1alpha2.Label(p) +
		"` lists the revisions")))

	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
	_, err = reader.Compare(t.Context(), p, view.Sides{From: 1, To: 2})
	g.Expect(err).To(MatchError(ContainSubstring("is in another cluster")))
}

// TestCompareHelm checks that a revision of another program shows none of its values.
func TestCompareHelm(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	releases := withReleases(t, reader)
	releases.revisions[0] = state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2}, Origin: 1}
	releases.records[2].Values = map[string]any{"list": []any{map[string]any{"key": "n3w-" + secretValue}}}

	c, err := reader.Compare(t.Context(), p, view.Sides{From: 1, To: 2})
	g.Expect(err).NotTo(HaveOccurred())
	expectNoSecrets(t, c)
	g.Expect(c.Changes[0].Diff).To(ContainSubstring("+        - --password=<masked value.list[0].key>\n"))
}

// TestCompareWithAdditionalManifests checks that contents are not shown if they may have values that no record has.
func TestCompareWithAdditionalManifests(t *testing.T) {
	for name, change := range map[string]func(v1alpha2.Provider, *memory){
		"now": func(p v1alpha2.Provider, _ *memory) {
			p.GetSpec().AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "more"}
		},
		"in the history": func(_ v1alpha2.Provider, m *memory) {
			m.revisions[1].Inputs = v1alpha2.RevisionInputs{Variables: "sha256:1", Manifests: "sha256:2"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, reader := sample(t, interceptor.Funcs{})
			releases := withReleases(t, reader)
			releases.records[1].Values = nil
			releases.records[2].Values = nil
			change(p, releases)

			c, err := reader.Compare(t.Context(), p, view.Sides{From: 1, To: 2})
			g.Expect(err).NotTo(HaveOccurred())
			expectNoSecrets(t, c)
			g.Expect(c.Withheld).To(HavePrefix("The contents are not shown"))
			g.Expect(c.Changes).To(HaveExactElements(
				objectdiff.Change{Object: "Deployment capa-system/manager", Kind: objectdiff.Changed},
				objectdiff.Change{Object: "Secret capa-system/other", Kind: objectdiff.Changed},
			))
		})
	}
}
