package release

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestHelmImports keeps what the package comment says about imports true.
func TestHelmImports(t *testing.T) {
	const (
		module = "github.com/capstan-project/capstan/"
		helm   = "helm.sh/helm/v3/pkg/"
	)

	g := NewWithT(t)
	format := `{{range .Imports}}{{$.ImportPath}} {{.}}{{"\n"}}{{end}}`
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, module+"...").Output()
	g.Expect(err).NotTo(HaveOccurred())

	found := 0

	for line := range strings.Lines(string(imports)) {
		importer, imported, _ := strings.Cut(strings.TrimSpace(line), " ")

		switch strings.TrimPrefix(imported, helm) {
		case "action", "kube", "storage", "storage/driver":
			found++

			g.Expect(importer).To(Or(
				HavePrefix(module+"controllers/release"),
				Equal(module+"cmd/capstan/internal/setup"),
			))
		case "release":
			g.Expect(importer).To(Or(
				HavePrefix(module+"controllers/release"),
				Equal(module+"cmd/capstan/internal/setup"),
				Equal(module+"chartgen/render"),
			))
		}
	}

	g.Expect(found).To(BeNumerically(">", 0))
}
