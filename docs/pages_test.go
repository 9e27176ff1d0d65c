package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	link     = regexp.MustCompile(`\[[^][]*\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	heading  = regexp.MustCompile(`^#+ +(.*)$`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(page, content string) []string {
	_, prose := split(page, content)

	var found []string

	for _, line := range prose {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}

		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")
		for n, base := 1, slug; slices.Contains(found, slug); n++ {
			slug = base + "-" + strconv.Itoa(n)
		}

		found = append(found, slug)
	}

	return found
}

func TestLinks(t *testing.T) {
	all := pages(t)
	for page, content := range all {
		_, prose := split(page, content)

		text := codeSpan.ReplaceAllString(strings.Join(prose, "\n"), "code")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}

			file, anchor, _ := strings.Cut(match[1], "#")

			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}

			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: link to %s, which does not exist", page, match[1])
			} else if anchor != "" && !slices.Contains(anchors(target, all[target]), anchor) {
				t.Errorf("%s: link to %s, but %s has no such heading", page, match[1], target)
			}
		}
	}
}

// TestIndex checks that each page is linked from the README of its folder, and a page of the reference from that of
// docs.
func TestIndex(t *testing.T) {
	g := NewWithT(t)

	all := pages(t)
	for page := range all {
		index := path.Dir(page) + "/README.md"
		if path.Dir(page) == "docs/reference" {
			index = "docs/README.md"
		}

		if strings.HasPrefix(page, "docs/") && page != index {
			link := "(" + strings.TrimPrefix(page, path.Dir(index)+"/") + ")"
			g.Expect(all[index]).To(ContainSubstring(link), "%s does not link to %s", index, page)
		}
	}
}

// TestReasons checks that troubleshooting.md lists exactly the reasons in the API: in its tables, or among those that
// need no action.
func TestReasons(t *testing.T) {
	g := NewWithT(t)
	reasons := constants(t, "Reason")
	g.Expect(len(reasons)).To(BeNumerically(">", 40))

	row := regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

	page := pages(t)["docs/troubleshooting.md"]
	_, fine, _ := strings.Cut(page, "These reasons need no action: ")
	fine, _, _ = strings.Cut(fine, ".")

	var explained []string
	for _, span := range codeSpan.FindAllString(fine, -1) {
		explained = append(explained, strings.Trim(span, "`"))
	}

	for _, match := range row.FindAllStringSubmatch(page, -1) {
		explained = append(explained, match[1])
		g.Expect(strings.TrimSpace(match[2])).NotTo(BeEmpty(), "cause of %s", match[1])
		g.Expect(strings.TrimSpace(match[3])).NotTo(BeEmpty(), "fix of %s", match[1])
	}

	g.Expect(explained).To(ConsistOf(reasons))
}

// TestConditions checks that concepts.md lists all condition types in the API.
func TestConditions(t *testing.T) {
	for _, condition := range constants(t, "Condition") {
		NewWithT(t).Expect(pages(t)["docs/concepts.md"]).To(ContainSubstring("\n| `" + condition + "` | "))
	}
}

// constants returns the values of the API's exported constants whose names have the suffix.
func constants(t *testing.T, suffix string) []string {
	t.Helper()

	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api/v1alpha2/conditions.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}

	var values []string

	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasSuffix(spec.Names[0].Name, suffix) || !spec.Names[0].IsExported() {
			return true
		}

		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}

		values = append(values, value)

		return true
	})

	return values
}
