package release

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// unchanged is a post-renderer with a digest.
type unchanged string

func (u unchanged) Render(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	return objects, nil
}
func (u unchanged) Digest() string { return string(u) }

// chartWith returns a chart with the ID of a content.
func chartWith(contentID string) *chart.Chart {
	return &chart.Chart{Metadata: chart.Metadata{Annotations: map[string]string{chartgen.AnnotationContentID: contentID}}}
}

func TestSpecDigest(t *testing.T) {
	digest := func(g Gomega, change func(*Spec)) string {
		spec := Spec{
			Chart:       chartWith("1"),
			ChartDigest: "sha256:1",
			Values:      map[string]any{"a": int64(1), "b": map[string]any{"c": "x", "d": true}},
		}
		change(&spec)

		digest, err := spec.Digest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validation.IsValidLabelValue(digest)).To(BeEmpty())

		return digest
	}
	values := func(values map[string]any) func(*Spec) { return func(s *Spec) { s.Values = values } }

	original := digest(NewWithT(t), func(*Spec) {})

	for name, tt := range map[string]struct {
		change func(*Spec)
		equal  bool
	}{
		"equal values":  {values(map[string]any{"b": map[string]any{"d": true, "c": "x"}, "a": float64(1)}), true},
		"another value": {values(map[string]any{"a": int64(2), "b": map[string]any{"c": "x", "d": true}}), false},
		"another type":  {values(map[string]any{"a": "1", "b": map[string]any{"c": "x", "d": true}}), false},
		"fewer values":  {values(map[string]any{"a": int64(1)}), false},
		"history limit": {func(s *Spec) { s.HistoryLimit = 4 }, true},
		"content":       {func(s *Spec) { s.Chart = chartWith("2") }, false},
		"archive":       {func(s *Spec) { s.ChartDigest = "sha256:2" }, true},
		"salt":          {func(s *Spec) { s.Salt = "x" }, false},
		"post-renderer": {func(s *Spec) { s.PostRenderer = unchanged("1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(digest(g, tt.change) == original).To(Equal(tt.equal))
		})
	}
}
