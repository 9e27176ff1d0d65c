package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrases are phrases that must not occur, with better ones.
var phrases = []struct{ pattern, better string }{
	{`anew`, "again; recreated, rebuilt"},
	{`mend(s|ed|ing)?`, "fix, correct, repair"},
	{`somebody|someone else|nobody|whoever|everybody`, "another program, no user, a user who, all users"},
	{`a person|a person's`, "a user; or rephrase without one"},
	{`(say|says|said|saying|tell|tells|told|telling) whether`, "reports whether, shows whether"},
	{`(stand|stands|stood|standing) (for|in|in for|beside)`, "represents, replaces, next to"},
	{`(is|are|was|were) to be`, "must be, is going to be, should be"},
	{`leads? to|led to|leading to`, "points to, resolves to, results in, causes"},
	{`(goes|go|went|going) on`, "continues, keeps running"},
	{`(made|make|makes|making) (of|from)`, "built from, created from, consists of"},
	{`makes? (a|an|the) \w+ of (it|them|these|those|what)`, "builds a … from, turns … into"},
	{`for ever`, "forever, permanently, indefinitely"},
	{`look(s|ed|ing)? after`, "manages"},
	{`takes? the place`, "replaces"},
	{`(is|are|was|were) told`, "is reported, is notified"},
	{`(tell|tells|told|telling) of`, "reports, describes"},
	{`shall`, "must, should, will"},
	{`thereby`, "which, so that"},
	{`at rest`, "idle, unchanged"},
	{`as the (resource|spec|release) says`, "in sync with the resource, as in the spec"},
	{`(is|are|was|were) said`, "is reported"},
	{`rights`, "permissions"},
	{`is spoken to|are spoken to`, "is accessed, is contacted"},
	{`does not do for`, "is incompatible with"},
	{`truce|heir|chores|stand-ins?|standins?`, "backoff, successor, follow-up work, placeholder"},
}

// TestStyle checks that no Go file, page, comment, template or help text contains a phrase that has
// a better replacement.
func TestStyle(t *testing.T) {
	words := regexp.MustCompile(`(?i)\b(` + alternatives() + `)\b`)

	for _, file := range textFiles(t) {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}

		for _, found := range findPhrases(string(data), words) {
			t.Errorf("%s:%s", file, found)
		}
	}
}

// alternatives returns a pattern that matches any of the phrases.
func alternatives() string {
	patterns := make([]string, 0, len(phrases))
	for _, phrase := range phrases {
		patterns = append(patterns, strings.ReplaceAll(phrase.pattern, " ", `\s+`))
	}

	return strings.Join(patterns, "|")
}

var (
	// wrapped matches the break between two lines of a comment or a paragraph.
	wrapped = regexp.MustCompile(`\n[ \t]*(//|#|\*|"|\+ ")?[ \t]*`)

	// verbatim matches what can contain any word: code, URLs, and names of other packages.
	verbatim = regexp.MustCompile("`[^`\n]*`|https?://\\S+|http\\.NoBody")
)

// findPhrases returns the phrases in a text as "LINE: phrase: better phrase". It also finds phrases
// that are split across lines.
func findPhrases(text string, words *regexp.Regexp) []string {
	blank := func(s string) string { return strings.Repeat("-", len(s)) }
	joined := wrapped.ReplaceAllStringFunc(text, func(s string) string { return "\n" + strings.Repeat(" ", len(s)-1) })
	joined = verbatim.ReplaceAllStringFunc(joined, blank)

	var found []string

	for _, place := range words.FindAllStringIndex(joined, -1) {
		line := 1 + strings.Count(joined[:place[0]], "\n")
		phrase := strings.Join(strings.Fields(joined[place[0]:place[1]]), " ")
		found = append(found, fmt.Sprintf("%d: %q: better: %s", line, phrase, betterThan(phrase)))
	}

	return found
}

func betterThan(found string) string {
	for _, phrase := range phrases {
		if regexp.MustCompile(`(?i)^(` + phrase.pattern + `)$`).MatchString(found) {
			return phrase.better
		}
	}

	return "another phrase"
}

// textFiles returns the paths of all hand-written text files of the module.
func textFiles(t *testing.T) []string {
	t.Helper()

	extensions := []string{".go", ".md", ".yaml", ".yml", ".tpl", ".txt", ".gotmpl", ".json"}
	names := []string{"Makefile"}
	skippedFolders := []string{".git", "bin", "dist", "testdata", "test/data", "charts/capstan/crds"}

	var files []string

	err := fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if entry.IsDir() {
			if slices.Contains(skippedFolders, file) || slices.Contains(skippedFolders, entry.Name()) {
				return fs.SkipDir
			}

			return nil
		}

		isText := slices.Contains(extensions, filepath.Ext(file)) || slices.Contains(names, entry.Name())
		if entry.Type().IsRegular() && isText && !isGenerated(file) {
			files = append(files, file)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}

// isGenerated reports whether a file is generated from Go code without comments of its own, or is
// this list of phrases.
func isGenerated(file string) bool {
	return strings.HasPrefix(filepath.Base(file), "zz_generated") || file == "docs/style_test.go"
}

func TestFindPhrases(t *testing.T) {
	words := regexp.MustCompile(`(?i)\b(` + alternatives() + `)\b`)

	for text, want := range map[string]int{
		"// It reports whether it works.":            0,
		"// It says whether it works.":               1,
		"// It says\n\t// whether it works.":         1,
		"It stands\nfor it.":                         1,
		"The mirror recommends amendments.":          0,
		"Run `nobody`, see https://example.org/anew": 0,
		"request.Body = http.NoBody":                 0,
		"Anew.":                                      1,
	} {
		if found := findPhrases(text, words); len(found) != want {
			t.Errorf("%q: found %q, want %d", text, found, want)
		}
	}
}
