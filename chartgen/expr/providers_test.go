package expr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/testproviders"
)

// TestProviders compares with clusterctl for real providers. PROVIDERS is a folder of providers in
// the layout of a local repository of clusterctl.
func TestProviders(t *testing.T) {
	folder := testproviders.Folder(t)

	files, err := filepath.Glob(filepath.Join(folder, "*", "*", "*-components.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).NotTo(BeEmpty())

	for _, file := range files {
		name, err := filepath.Rel(folder, file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(file)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			text, err := Parse(string(source))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			expectSameRequired(t, text, string(source))
			expectEqual(t, text, string(source), nil)
			expectEqual(t, text, string(source), plain(text))
			expectSameWithHostile(t, withVariables(string(source)))
			expectSameInParts(t, text, string(source))
		})
	}
}

// plain returns a different value for each variable.
func plain(text *Text) map[string]string {
	variables := map[string]string{}
	for _, v := range text.Variables() {
		variables[v.Name] = "value-of-" + v.Name
	}

	return variables
}

// withVariables removes the YAML documents without expressions.
func withVariables(source string) string {
	var b strings.Builder

	for document := range strings.SplitAfterSeq(source, "\n---\n") {
		if strings.Contains(document, "${") {
			b.WriteString(document)
		}
	}

	return b.String()
}

// expectSameWithHostile compares with clusterctl until each hostile value has been used for some
// variable.
func expectSameWithHostile(t *testing.T, source string) {
	t.Helper()

	text, err := Parse(source)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	used := text.Variables()
	for first := 0; len(used) > 0 && first < len(hostile); first += len(used) {
		variables := map[string]string{}
		for i, v := range used {
			variables[v.Name] = hostile[(first+i)%len(hostile)]
		}

		expectEqual(t, text, source, variables)
	}
}

// expectSameInParts renders each YAML document separately and compares the result with clusterctl.
func expectSameInParts(t *testing.T, text *Text, source string) {
	t.Helper()

	variables := plain(text)
	want, err := clusterctl(source, variables)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	var got strings.Builder

	start := 0
	for document := range strings.SplitAfterSeq(source, "\n---\n") {
		part, err := text.Slice(start, start+len(document))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		out, err := render(part.Template(), asValues(variables))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		got.WriteString(out)

		start += len(document)
	}

	if got.String() != want {
		t.Fatal("the documents rendered separately differ from the whole text in clusterctl")
	}
}
