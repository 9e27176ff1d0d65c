package table_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/compat/table"
)

const root = "../../.."

// TestDifferences checks that docs/cluster-api-operator.md and the specs name the same differences.
func TestDifferences(t *testing.T) {
	g := NewWithT(t)

	page, err := os.ReadFile(filepath.Join(root, "docs/cluster-api-operator.md"))
	g.Expect(err).NotTo(HaveOccurred())
	documented, err := table.ParseDifferences(string(page))
	g.Expect(err).NotTo(HaveOccurred())

	shown := map[string]bool{}

	for _, folder := range []string{"compat", "e2e"} {
		files, err := filepath.Glob(filepath.Join(root, "test", folder, "*_test.go"))
		g.Expect(err).NotTo(HaveOccurred())

		for _, file := range files {
			for _, subject := range subjects(t, file) {
				shown[subject] = true
			}
		}
	}

	for _, d := range documented {
		g.Expect(shown).To(HaveKey(d.Subject), "docs/cluster-api-operator.md has a difference that no spec shows")
		g.Expect(d.Reason).NotTo(BeEmpty(), d.Subject)
		delete(shown, d.Subject)
	}

	g.Expect(shown).To(BeEmpty(), "differences that docs/cluster-api-operator.md lacks")
}

// subjects returns the differences that the specs in a file name: all arguments of table.Row after the second.
func subjects(t *testing.T, file string) (found []string) {
	t.Helper()

	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	ast.Inspect(parsed, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}

		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || function.Sel.Name != "Row" {
			return true
		}

		for _, argument := range call.Args[2:] {
			subject, err := strconv.Unquote(argument.(*ast.BasicLit).Value)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			found = append(found, subject)
		}

		return true
	})

	return found
}

func TestParseDifferences(t *testing.T) {
	g := NewWithT(t)

	found, err := table.ParseDifferences(`
## Differences

| | there | here |
|---|---|---|
| upgrade | old | new |

| field | difference | why |
|---|---|---|
| ` + "`a`, `.b`" + ` | ignored | there is none |

## Migrate

| field | difference |
|---|---|
| c | d |
`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal([]table.Difference{{"upgrade", "new"}, {"a, .b", "there is none"}}))

	for _, page := range []string{
		"",
		"\n## Differences\n## Migrate\n",
		"\n## Differences\n| one |\n## Migrate",
	} {
		_, err := table.ParseDifferences(page)
		g.Expect(err).To(HaveOccurred(), page)
	}
}
