package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// brokenProvider returns a copy of a sample provider with a finding: a warning because metadata.yaml
// has no kind, or an error because a Service is missing.
func brokenProvider(t *testing.T, level string) string {
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "bootstrap-kubeadm")
	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(sampleProviders, "bootstrap-kubeadm")))).To(Succeed())

	edit := func(name, old, replacement string) {
		path := filepath.Join(folder, "v1.0.0", name)
		data, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(data)).To(ContainSubstring(old))
		g.Expect(os.WriteFile(path, []byte(strings.Replace(string(data), old, replacement, 1)), 0o600)).To(Succeed())
	}
	if level == "warning" {
		edit("metadata.yaml", "kind: Metadata\n", "")
	} else {
		edit("bootstrap-components.yaml", "kind: Service\n", "kind: ConfigMap\n")
	}

	return folder
}

func TestLintFormats(t *testing.T) {
	folder := brokenProvider(t, "warning")

	for format, want := range map[string]string{
		"table":  "1 warning",
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
	folder := brokenProvider(t, "warning")
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
