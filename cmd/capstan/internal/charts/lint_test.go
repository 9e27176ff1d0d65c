package charts

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

func TestLintFormats(t *testing.T) {
	folder := clitest.BrokenProvider(t, sampleProviders, "warning")

	for format, want := range map[string]string{
		"table":  "2 warnings",
		"json":   `"level": "warning"`,
		"yaml":   "level: warning\n",
		"sarif":  `"version": "2.1.0"`,
		"github": "::warning ",
	} {
		out, _, err := run(t, "lint", folder, "-o", format)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(out).To(ContainSubstring(want))
	}
}

func TestLintFiles(t *testing.T) {
	g := NewWithT(t)
	folder := clitest.BrokenProvider(t, sampleProviders, "warning")
	release := filepath.Join(folder, "v1.0.0")
	g.Expect(os.Remove(filepath.Join(release, "metadata.yaml"))).To(Succeed())
	g.Expect(os.Rename(filepath.Join(release, "bootstrap-components.yaml"), filepath.Join(release, "my-components.yaml"))).
		To(Succeed())

	findings, err := lintFolder(t.Context(), folder)
	g.Expect(err).NotTo(HaveOccurred())

	rules := map[string]string{}
	for _, f := range findings {
		rules[f.Rule] = f.File
	}

	g.Expect(rules).To(HaveKeyWithValue("files/required", filepath.Join(release, "metadata.yaml")))
	g.Expect(rules).To(HaveKeyWithValue("files/names", filepath.Join(release, "my-components.yaml")))
}
