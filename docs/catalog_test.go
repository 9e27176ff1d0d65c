package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/capstan-project/capstan/chartgen/catalog"
)

// TestCatalogIsExamined: the page about real releases names each entry of clusterctl's list, in the row of its type.
func TestCatalogIsExamined(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/what-providers-publish.md"))
	if err != nil {
		t.Fatal(err)
	}

	known, err := catalog.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range known.Entries {
		row := "| " + string(e.Type) + " |"
		_, after, _ := strings.Cut(string(page), row)
		line, _, _ := strings.Cut(after, "\n")

		names := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,;:|", r) })
		if !slices.Contains(names, e.Name) {
			t.Errorf("the row %q of what-providers-publish.md does not name %s", row, e.Name)
		}
	}
}
