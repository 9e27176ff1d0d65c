package consistency_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/consistency"
)

func TestShows(t *testing.T) {
	for name, c := range map[string]struct {
		written, cached string
		want            bool
	}{
		"an older version":               {"10", "9", false},
		"the same version":               {"10", "10", true},
		"a newer version":                {"9", "10", true},
		"nothing":                        {"9", "", false},
		"a version cannot be compared":   {"9", "new", false},
		"a write with an unknown result": {"", "10", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			writes := consistency.Writes[string]{}
			g.Expect(writes.Shows("a", c.cached)).To(BeTrue(), "nothing was written")

			writes.Note("a", c.written)
			g.Expect(writes.Shows("a", c.cached)).To(Equal(c.want))
			g.Expect(writes.Shows("b", c.cached)).To(BeTrue(), "something else was written")

			writes.Forget("a")
			g.Expect(writes.Shows("a", c.cached)).To(BeTrue())
		})
	}
}

func TestNewest(t *testing.T) {
	g := NewWithT(t)
	g.Expect(consistency.Newest(nil)).To(BeEmpty())
	g.Expect(consistency.Newest([]string{"9", "10", "8"})).To(Equal("10"))
}
