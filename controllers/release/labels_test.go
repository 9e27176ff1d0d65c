package release

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestStampFitsAndReplacesWhatIsInherited(t *testing.T) {
	g := NewWithT(t)
	digest := chart.Digest([]byte("a chart"))
	inherited := stamp{
		holder:      "old",
		digest:      "v1-old",
		version:     "v1.0.0",
		chartDigest: digest,
		rollbackTo:  7,
	}.on(
		map[string]string{"somebody": "else"},
		1,
	)
	labels := stamp{holder: strings.Repeat("long/", 30), digest: "v1-new", version: "v1.1.0+build"}.on(inherited, 2)

	g.Expect(labels).To(HaveKeyWithValue("somebody", "else"))
	g.Expect(labels).To(HaveKeyWithValue(RevisionLabel, "2"))
	g.Expect(labels).To(HaveKeyWithValue("capstan.dev/digest", "v1-new"))
	g.Expect(labels).To(HaveKeyWithValue(ChartDigestLabel, ""))

	for key, value := range labels {
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
	}

	g.Expect(inherited).To(HaveKeyWithValue(RevisionLabel, "1"), "the stamp is on a copy")
}

func TestDigestsSurviveTheirLabels(t *testing.T) {
	g := NewWithT(t)
	digest := chart.Digest([]byte("a chart"))
	label := encodeDigest(digest)
	g.Expect(validation.IsValidLabelValue(label)).To(BeEmpty())
	g.Expect(decodeDigest(label)).To(Equal(digest))

	for _, odd := range []string{"", "sha256:", "sha256:zz", "md5:0123", digest + "00"} {
		g.Expect(encodeDigest(odd)).To(BeEmpty(), odd)
		g.Expect(decodeDigest(odd)).To(BeEmpty(), odd)
	}
}

type upperCase struct{ digest string }

func (u upperCase) Render(manifest []byte) ([]byte, error) {
	return []byte(strings.ToUpper(string(manifest))), nil
}
func (u upperCase) Digest() string { return u.digest }

func TestDigestOfDesired(t *testing.T) {
	base := Desired{
		ChartDigest: "sha256:1",
		Values:      map[string]any{"a": int64(1), "b": map[string]any{"c": "x", "d": true}},
	}
	digest := func(g Gomega, change func(*Desired), kubernetes string) string {
		d := base
		change(&d)
		digest, err := d.digest(kubernetes)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validation.IsValidLabelValue(digest)).To(BeEmpty())

		return digest
	}
	g := NewWithT(t)
	same := digest(g, func(*Desired) {}, "1.36")

	for name, tt := range map[string]struct {
		change     func(*Desired)
		kubernetes string
		equal      bool
	}{
		"equal values":       {func(d *Desired) { d.Values = map[string]any{"b": map[string]any{"d": true, "c": "x"}, "a": float64(1)} }, "1.36", true},
		"history limit":      {func(d *Desired) { d.HistoryLimit = 4 }, "1.36", true},
		"chart":              {func(d *Desired) { d.ChartDigest = "sha256:2" }, "1.36", false},
		"a value":            {func(d *Desired) { d.Values = map[string]any{"a": int64(2)} }, "1.36", false},
		"a value's type":     {func(d *Desired) { d.Values = map[string]any{"a": "1", "b": map[string]any{"c": "x", "d": true}} }, "1.36", false},
		"post-renderer":      {func(d *Desired) { d.PostRenderer = upperCase{"1"} }, "1.36", false},
		"version of the API": {func(*Desired) {}, "1.37", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(digest(g, tt.change, tt.kubernetes) == same).To(Equal(tt.equal))
		})
	}
}

func TestSchemaMayNotReachOut(t *testing.T) {
	for schema, ok := range map[string]bool{
		``: true,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/definitions/a"}}}`: true,
		`{"properties": {"a": {"$ref": "https://example.org/a.json"}}}`:                                            false,
		`{"allOf": [{"$ref": "file:///etc/passwd"}]}`:                                                              false,
		`{"allOf": [{"$ref": "other.json"}]}`:                                                                      false,
		`{`:                                                                                                        false,
	} {
		t.Run(schema, func(t *testing.T) {
			NewWithT(t).Expect(onlyLocalReferences([]byte(schema)) == nil).To(Equal(ok))
		})
	}
}
