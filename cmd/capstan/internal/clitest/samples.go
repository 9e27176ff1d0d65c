package clitest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

// BrokenProvider returns a copy of one of the sample providers with a finding of lint: a
// "warning" because metadata.yaml has no kind, or an "error" because a Service is missing.
func BrokenProvider(t *testing.T, samples, level string) string {
	t.Helper()

	g := gomega.NewWithT(t)
	folder := filepath.Join(t.TempDir(), "cluster-api")
	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(samples, "cluster-api")))).To(gomega.Succeed())

	name, old, replacement := "core-components.yaml", "kind: Service\n", "kind: ConfigMap\n"
	if level == "warning" {
		name, old, replacement = "metadata.yaml", "kind: Metadata\n", ""
	}

	path := filepath.Join(folder, "v1.0.0", name)
	data, err := os.ReadFile(path)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(data)).To(gomega.ContainSubstring(old))

	edited := strings.Replace(string(data), old, replacement, 1)
	err = os.WriteFile(path, []byte(edited), 0o600) //nolint:gosec // the path is in a temporary folder
	g.Expect(err).NotTo(gomega.HaveOccurred())

	return folder
}

// Configuration returns a configuration in clusterctl's format in which the infrastructure provider
// docker comes from the folder with the sample providers.
func Configuration(t *testing.T, samples string) string {
	t.Helper()

	folder, err := filepath.Abs(samples)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())

	return fmt.Sprintf(
		"providers: [{name: docker, type: InfrastructureProvider, url: %q}]",
		"file://"+folder+"/infrastructure-docker/latest/infrastructure-components.yaml",
	)
}
