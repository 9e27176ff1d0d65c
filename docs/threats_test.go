package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestThreats checks that each row of the table of threats in security.md names tests that exist.
func TestThreats(t *testing.T) {
	g := NewWithT(t)

	rows, err := threatRows(pages(t)["docs/security.md"])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(rows)).To(BeNumerically(">=", 10))

	for _, row := range rows {
		for _, err := range checkThreat(row) {
			t.Errorf("docs/security.md: %q: %s", row[0], err)
		}
	}
}

const threatHeader = "| threat | how it is met | test |"

// threatRows returns the cells of the rows of the only table of threats in a page.
func threatRows(page string) ([][]string, error) {
	return tableRows(page, threatHeader)
}

// tableRows returns the cells of the rows of the only table with a header in a page.
func tableRows(page, header string) ([][]string, error) {
	columns := strings.Count(header, "|") - 1

	_, table, found := strings.Cut(page, "\n"+header+"\n|"+strings.Repeat("---|", columns)+"\n")
	if !found || strings.Contains(table, header) {
		return nil, fmt.Errorf("there must be one table with the header %s", header)
	}

	var rows [][]string

	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			break
		}

		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}

		rows = append(rows, cells)
	}

	return rows, nil
}

// testLink matches a reference to a test: [TestName](../path/to/file_test.go), [TestName/case](…), or the text of
// a scenario.
var testLink = regexp.MustCompile(`\[([^][]+)\]\((?:\.\./)+([^)\s]+_test\.go)\)`)

// checkThreat returns what is wrong with a row.
func checkThreat(cells []string) []error {
	if len(cells) != 3 || slices.Contains(cells, "") {
		return []error{errors.New("the row must have three cells, none of them empty")}
	}

	return checkTests(cells[2])
}

// checkTests returns what is wrong with a cell that must contain links to tests.
func checkTests(cell string) (problems []error) {
	references := testLink.FindAllStringSubmatch(cell, -1)
	if rest := strings.Trim(testLink.ReplaceAllString(cell, ""), " ,"); len(references) == 0 || rest != "" {
		return []error{errors.New("the last cell must contain only links to tests, separated by commas")}
	}

	for _, reference := range references {
		name, file := reference[1], reference[2]

		tests, err := testsIn(filepath.Join(root, file))
		if err != nil {
			problems = append(problems, err)
		} else if !slices.Contains(tests, name) {
			problems = append(problems, fmt.Errorf("%s has no test %q", file, name))
		}
	}

	return problems
}

// specs are the functions whose first argument is the text of a scenario. Pending ones, such as PIt, do not count.
var specs = []string{"It", "Specify", "Entry", "Describe", "DescribeTable", "Context", "When"}

// isTest matches the names of functions that are tests. The seeds of a fuzz test run with all tests.
var isTest = regexp.MustCompile(`^(Test|Fuzz)`)

// testsIn returns the names of the tests in a file: TestName of functions, TestName/case for each string in them, and
// the texts of scenarios.
func testsIn(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}

	var names []string

	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !isTest.MatchString(function.Name.Name) {
			continue
		}

		names = append(names, function.Name.Name)
		for _, text := range stringsIn(function) {
			names = append(names, function.Name.Name+"/"+text)
		}
	}

	ast.Inspect(parsed, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}

		if name, ok := call.Fun.(*ast.Ident); ok && slices.Contains(specs, name.Name) {
			if text, ok := call.Args[0].(*ast.BasicLit); ok {
				names = append(names, unquote(text))
			}
		}

		return true
	})

	return names, nil
}

// stringsIn returns the string literals below a node.
func stringsIn(node ast.Node) (found []string) {
	ast.Inspect(node, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			found = append(found, unquote(literal))
		}

		return true
	})

	return found
}

func unquote(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return literal.Value
	}

	return text
}

func TestCheckThreat(t *testing.T) {
	const table = "# Security\n\n" + threatHeader + "\n|---|---|---|\n"

	const here = "(../docs/threats_test.go)"

	for row, want := range map[string]string{
		"| a | b | [TestThreats]" + here + " |":                                           "",
		"| a | b | [TestThreats]" + here + ", [TestCheckThreat/only links]" + here + " |": "",
		"| a | b | [The kustomize base](../test/chart/config_test.go) |":                  "",
		"| a | b | [TestNothing]" + here + " |":                                           "has no test",
		"| a | b | [TestThreats/nothing]" + here + " |":                                   "has no test",
		"| a | b | [testsIn]" + here + " |":                                               "has no test",
		"| a | b | [TestThreats](../docs/missing_test.go) |":                              "no such file",
		"| a | b | TestThreats |":                                                         "only links",
		"| a | b | [TestThreats]" + here + " by hand |":                                   "only links",
		"| a | | [TestThreats]" + here + " |":                                             "none of them empty",
		"| a | b | |":                                                                     "none of them empty",
		"| a | b |":                                                                       "three cells",
	} {
		rows, err := threatRows(table + row + "\n\n| another | table |\n")
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: rows %q, error %v", row, rows, err)
		}

		err = errors.Join(checkThreat(rows[0])...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", row, err, want)
		}
	}

	for _, page := range []string{"# Security\n", table + table} {
		if _, err := threatRows(page); err == nil {
			t.Errorf("%q: no error", page)
		}
	}
}
