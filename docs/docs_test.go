// Package docs_test checks the documentation: links resolve, resources are valid, commands and flags
// exist, the quick start works, all condition reasons are explained, and the style is plain.
package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// root is the module's root folder.
const root = ".."

// block is a fenced block of a page.
type block struct {
	page, language, text string
	line                 int
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// pages returns the content of the project's Markdown files by path, relative to root.
func pages(t *testing.T) map[string]string {
	t.Helper()

	found := map[string]string{}

	for _, pattern := range []string{
		"*.md", "docs/*.md", "docs/*/*.md", "charts/capstan/*.md", "test/*/*.md", "test/*/*/*.md",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}

		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			found[strings.TrimPrefix(file, root+"/")] = string(data)
		}
	}

	return found
}

var fence = regexp.MustCompile("^( *)```([a-z]*)\\s*$")

// split splits a page into its fenced blocks and the remaining lines.
func split(page, content string) (blocks []block, prose []string) {
	var open *block

	indent := ""

	for n, line := range strings.Split(content, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case match != nil && open == nil:
			indent, open = match[1], &block{page: page, language: match[2], line: n + 2}
		case match != nil:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		default:
			prose = append(prose, line)
		}
	}

	return blocks, prose
}

// blocks returns the fenced blocks of all pages in a language.
func blocks(t *testing.T, language string) []block {
	t.Helper()

	var found []block

	for page, content := range pages(t) {
		all, _ := split(page, content)
		for _, b := range all {
			if b.language == language {
				found = append(found, b)
			}
		}
	}

	return found
}

// cluster is a control plane with a client.
type cluster struct {
	*bed.Bed
	client client.Client
}

// shared is the control plane of all tests that need one.
var shared = bedtest.Shared{Options: func() bed.Options { return bed.Options{} }}

func start(t *testing.T) *cluster {
	t.Helper()

	b := shared.Get(t)

	c, err := harness.NewClient(b.Config())
	if err != nil {
		t.Fatal(err)
	}

	return &cluster{b, c}
}

// remove is set while the tests run.
func TestMain(m *testing.M) { shared.Main(m, func() error { return remove() }) }
