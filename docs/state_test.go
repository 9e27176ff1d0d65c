package docs_test

import (
	"errors"
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

// stateTables are the headers of the tables in the page about state that outlives a process, and what finds the names
// in their first column in code. A name is the text of the pattern's groups.
var stateTables = []struct {
	header string
	code   *regexp.Regexp
}{
	{"| key | where | content | promise | test |", regexp.MustCompile(`\bPrefix \+ "/([a-z-]+)"`)},
	{
		"| name | what it is | promise | test |",
		regexp.MustCompile(`"(capstan)"|"(capstan-[a-z-]*[a-z]|capstan\.[a-z0-9.-]+\.io)"|FieldOwner \+ "(-[a-z-]+)"`),
	},
	{"| what | where it is described | promise | test |", nil},
}

// TestState checks that the page has each key and each name that the programs use, with a promise and tests that exist.
func TestState(t *testing.T) {
	g := NewWithT(t)

	for _, table := range stateTables {
		rows, err := tableRows(pages(t)["docs/reference/state.md"], table.header)
		g.Expect(err).NotTo(HaveOccurred())

		var documented []string

		for _, cells := range rows {
			documented = append(documented, strings.TrimSuffix(strings.Trim(cells[0], "`"), "…"))

			for _, err := range checkState(cells, strings.Count(table.header, "|")-1) {
				t.Errorf("docs/reference/state.md: %s: %s", cells[0], err)
			}
		}

		if table.code != nil {
			g.Expect(documented).To(ConsistOf(namesInCode(t, table.code)), table.header)
		}
	}
}

// checkState returns what is wrong with a row, whose last cells are the promise and the tests.
func checkState(cells []string, columns int) []error {
	if len(cells) != columns || slices.Contains(cells, "") {
		return []error{errors.New("the row must have the cells of the header, none of them empty")}
	}

	problems := checkTests(cells[columns-1])
	if promise := cells[columns-2]; !slices.Contains([]string{"API", "kept", "internal"}, promise) {
		problems = append(problems, errors.New("unknown promise "+promise))
	}

	return problems
}

// namesInCode returns the names that a pattern finds in the code of the programs, sorted.
func namesInCode(t *testing.T, pattern *regexp.Regexp) []string {
	t.Helper()

	found := map[string]bool{}

	for _, folder := range []string{"api", "chartgen", "cmd/capstan", "cmd/operator", "config/crd", "controllers"} {
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

	delete(found, "capstan-render-chart") // a child process

	return slices.Sorted(maps.Keys(found))
}
