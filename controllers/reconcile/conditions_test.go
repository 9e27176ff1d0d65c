package reconcile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Every condition is written in one place, from what a run found out, so that two steps cannot
// contradict each other.
func TestConditionsAreWrittenInOnePlace(t *testing.T) {
	g := NewWithT(t)
	writes := regexp.MustCompile(`conditions\.(Mark|Set|Delete)`)

	var writers []string

	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		content, err := os.ReadFile(path)
		if writes.Match(content) {
			writers = append(writers, path)
		}

		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writers).To(ConsistOf("../reconcile/conditions.go", "../reconcile/result.go"))
}
