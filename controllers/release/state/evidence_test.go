package state

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestConfirms(t *testing.T) {
	for name, c := range map[string]struct {
		evidence         Evidence
		known, has, none bool
	}{
		"no evidence":                    {Evidence{}, false, false, false},
		"a digest in the status":         {KnownDigests([]string{"v1:old", "v1:x"}), true, true, false},
		"another digest in the status":   {KnownDigests([]string{"v1:old"}), true, false, false},
		"any record that a user accepts": {AnyRecord(), true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revision := Revision{Number: 3, Known: c.evidence}
			confirmed := revision.Confirm()

			g.Expect(confirmed.Number()).To(Equal(3))
			g.Expect(revision.Confirmed()).To(Equal(c.known))
			g.Expect(confirmed.Known()).To(Equal(c.known))
			g.Expect(confirmed.Confirms("v1:x")).To(Equal(c.has))
			g.Expect(confirmed.Confirms("")).To(Equal(c.none), "a record without a digest")
			g.Expect(Confirmed{}.Confirms("v1:x")).To(BeFalse())
		})
	}
}

// TestEvidenceIsFound: evidence has no exported fields, and nothing but package foreign finds any.
func TestEvidenceIsFound(t *testing.T) {
	g := NewWithT(t)
	finds := regexp.MustCompile(`\b(KnownDigests|AnyRecord)\(`)

	var found []string

	for _, root := range []string{"controllers", "cmd", "contract"} {
		err := filepath.WalkDir(filepath.Join("../../..", root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}

			source, err := os.ReadFile(path)
			if finds.Match(source) {
				found = append(found, filepath.ToSlash(strings.TrimPrefix(path, "../../../")))
			}

			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(found).To(Equal([]string{"controllers/foreign/release.go", "controllers/release/state/evidence.go"}))
}
