package patches_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/patches"
)

// TestMergePatch covers the examples of objects in RFC 7396, appendix A, and nulls inside of lists.
func TestMergePatch(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":[]}`, `{"a":[null,{"b":null}]}`, `{"a":[null,{"b":null}]}`},
	} {
		g := NewWithT(t)
		r, err := patches.New(patches.Input{ManifestPatches: []string{`{"kind":"X","spec":` + c[1] + `}`}})
		g.Expect(err).NotTo(HaveOccurred())
		out, err := r.Render([]byte(`{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":` + c[0] + `}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(out)).To(MatchYAML(`{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":`+c[2]+`}`), c[1])
	}
}
