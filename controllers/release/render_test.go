package release

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

func TestRecordPatchedCRDs(t *testing.T) {
	for name, test := range map[string]struct {
		before  map[string]string
		patched string
		want    map[string]string
	}{
		"the first annotation": {nil, "a", map[string]string{storage.PatchedCRDsAnnotation: "a"}},
		"beside others": {
			map[string]string{"other": "kept"}, "a", map[string]string{"other": "kept", storage.PatchedCRDsAnnotation: "a"},
		},
		"no longer": {map[string]string{storage.PatchedCRDsAnnotation: "a"}, "", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &helm.Chart{Metadata: &helm.Metadata{Annotations: test.before}}
			recordPatchedCRDs(c, test.patched)
			g.Expect(c.Metadata.Annotations).To(Equal(test.want))
			g.Expect(test.before).NotTo(HaveLen(2), "the chart in memory is not changed")
		})
	}
}
