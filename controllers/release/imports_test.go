package release

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	module  = "github.com/capstan-project/capstan/"
	library = "helm.sh/helm/v3/"
)

// list returns the lines that `go list` prints.
func list(t *testing.T, args ...string) []string {
	t.Helper()

	output, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return strings.Fields(string(output))
}

// TestHelmImports keeps what the comment of package helm says true.
func TestHelmImports(t *testing.T) {
	format := `{{range .Imports}}{{$.ImportPath}}>{{.}}{{"\n"}}{{end}}`

	packages := []string{module + "controllers/...", module + "chartgen/...", module + "cmd/operator/..."}

	for _, line := range list(t, append([]string{"-f", format}, packages...)...) {
		importer, imported, _ := strings.Cut(line, ">")
		if importer != module+"chartgen/helm" {
			NewWithT(t).Expect(imported).NotTo(HavePrefix(library), importer)
		}
	}
}

// TestHelmIsLinkedInPart: the operator does not contain what Helm's programs apply releases with.
func TestHelmIsLinkedInPart(t *testing.T) {
	g := NewWithT(t)
	linked := list(t, "-deps", module+"cmd/operator")
	g.Expect(linked).To(ContainElements(library+"pkg/engine", library+"pkg/release"))

	for _, name := range []string{"action", "kube", "kube/fake", "cli", "getter", "downloader", "registry", "repo"} {
		g.Expect(linked).NotTo(ContainElement(library + "pkg/" + name))
	}
}
