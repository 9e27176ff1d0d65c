package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var (
	// annotation matches the key of an annotation of the API in code.
	annotation = regexp.MustCompile(`Annotation += Prefix \+ "/([a-z-]+)"`)
	// nameInCode matches names of objects and of field managers in code.
	nameInCode = regexp.MustCompile(
		`"(capstan)"|"(capstan-[a-z-]*[a-z]|capstan\.[a-z0-9.-]+\.io)"|FieldOwner \+ "(-[a-z-]+)"`)
)

// TestNames checks that the page about annotations and names has those that the programs use.
func TestNames(t *testing.T) {
	g := NewWithT(t)
	documented := func(header string) []string {
		rows, err := tableRows(pages(t)["docs/reference/annotations.md"], header)
		g.Expect(err).NotTo(HaveOccurred())

		var names []string
		for _, cells := range rows {
			names = append(names, strings.Trim(cells[0], "`"))
		}

		return names
	}

	g.Expect(documented("| key | where | content |")).To(ContainElements(namesInCode(t, annotation)))
	g.Expect(documented("| name | what it is |")).To(ConsistOf(namesInCode(t, nameInCode)))
}

// namesInCode returns the names that a pattern finds in the code of the programs, sorted.
func namesInCode(t *testing.T, pattern *regexp.Regexp) []string {
	t.Helper()

	found := map[string]bool{}

	for _, folder := range []string{"api", "chartgen", "cmd/capstan", "cmd/operator", "controllers"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}

			code, err := os.ReadFile(path)
			for _, match := range pattern.FindAllStringSubmatch(string(code), -1) {
				name := strings.Join(match[1:], "")
				if strings.HasPrefix(name, "-") { // appended to the field owner
					name = v1alpha2.FieldOwner + name
				}

				found[name] = true
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return slices.Sorted(maps.Keys(found))
}
