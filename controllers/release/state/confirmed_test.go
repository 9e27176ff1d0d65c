package state

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestConfirms(t *testing.T) {
	for name, c := range map[string]struct {
		digest     string
		known, has bool
	}{
		"no digest in the status":      {"", false, false},
		"its digest in the status":     {"v1:x", true, true},
		"another digest in the status": {"v1:old", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revision := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 3, Digest: c.digest}}
			confirmed := revision.Confirm()

			g.Expect(confirmed.Number()).To(Equal(3))
			g.Expect(revision.Confirmed()).To(Equal(c.known))
			g.Expect(confirmed.Known()).To(Equal(c.known))
			g.Expect(confirmed.Confirms("v1:x")).To(Equal(c.has))
			g.Expect(confirmed.Confirms("")).To(BeFalse(), "a record without a digest")
			g.Expect(Confirmed{}.Confirms("")).To(BeFalse())
		})
	}
}
