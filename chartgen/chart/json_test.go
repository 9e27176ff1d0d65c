package chart_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// TestJSON: a CRD of a chart is parsed once, until its JSON is dropped. Its text would show whether it is parsed.
func TestJSON(t *testing.T) {
	g := NewWithT(t)

	c, err := chart.New(chart.Metadata{Name: "a", Version: "1.0.0"}, []chart.File{
		{Name: "crds/a.yaml", Data: []byte("a: b\n")},
		{Name: "objects/a.yaml", Data: []byte("a: b\n")},
	})
	g.Expect(err).NotTo(HaveOccurred())

	file := c.CRDs[0]
	g.Expect(file.JSON()).To(MatchJSON(`{"a": "b"}`))

	copy(file.Data, "a: c\n")
	g.Expect(c.CRDs[0].JSON()).To(MatchJSON(`{"a": "b"}`), "copies of the file share what it keeps")

	file.DropJSON()
	g.Expect(c.CRDs[0].JSON()).To(MatchJSON(`{"a": "c"}`))

	given := file.WithJSON([]byte(`{"a": "d"}`))
	g.Expect(given.JSON()).To(MatchJSON(`{"a": "d"}`))
	g.Expect(file.JSON()).To(MatchJSON(`{"a": "c"}`), "it is another file")

	other := chart.File{Data: []byte("a: b\n")}
	g.Expect(other.JSON()).To(MatchJSON(`{"a": "b"}`), "it keeps nothing")
	other.DropJSON()

	other.Data = []byte("a: [")
	_, err = other.JSON()
	g.Expect(err).To(HaveOccurred())
}
