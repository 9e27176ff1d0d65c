package charts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/image"
)

const registryPassword = "pass-word"

// TestRegistry: docker's configuration gives access to charts.
func TestRegistry(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	r, err := bed.RunRegistry(
		t.Context(),
		bed.RegistryOptions{Dir: t.TempDir(), TLS: true, User: "me", Password: registryPassword},
	)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	ca, config := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "config.json")
	g.Expect(os.WriteFile(ca, r.CA, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(config, []byte("{}"), 0o600)).To(Succeed())

	access := []string{"--registry-ca", ca, "--registry-config", config}
	mirror := func() (string, error) {
		_, log, err := clitest.Run(t.Context(), NewMirrorCommand, slices.Concat(access, []string{
			"infrastructure-aws", "--source", sampleProviders, "--charts-only", "--to", "oci://" + r.Address + "/capi",
		})...)

		return log, err
	}

	_, err = mirror()
	g.Expect(err).To(MatchError(ContainSubstring("give a username and a password, or a docker configuration")))

	logIn(t, r, config)

	log, err := mirror()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log).To(ContainSubstring("copied"))

	log, err = mirror()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log).To(ContainSubstring("present"))

	reference := "oci://" + r.Address + "/capi/charts/infrastructure-aws:1.0.0"
	linted, _, err := run(t, slices.Concat([]string{"lint", reference}, access)...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(linted).To(And(ContainSubstring("warning infra-cluster/template: "), ContainSubstring("\n  "+reference+"  ")))
}

// logIn writes credentials for a registry to a file, as docker login does.
func logIn(t *testing.T, r *bed.Registry, config string) {
	t.Helper()

	login := base64.StdEncoding.EncodeToString([]byte("me:" + registryPassword))
	NewWithT(t).Expect(os.WriteFile(config, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.Address, login), 0o600)).
		To(Succeed())
}

// TestLintRegistry: an artifact gives the findings that a folder with the same files gives, also of several arguments.
func TestLintRegistry(t *testing.T) {
	g := NewWithT(t)
	r, err := bed.RunRegistry(
		t.Context(),
		bed.RegistryOptions{Dir: t.TempDir(), TLS: true, User: "me", Password: registryPassword},
	)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	ca := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(ca, r.CA, 0o600)).To(Succeed())

	folder := filepath.Join(t.TempDir(), "infrastructure-docker", "v1.0.0")
	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(sampleProviders, "infrastructure-docker", "v1.0.0")))).To(Succeed())
	g.Expect(os.Remove(filepath.Join(folder, "metadata.yaml"))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "cluster-template.yml"), []byte("{}"), 0o600)).To(Succeed())

	var layers []image.Blob

	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())

	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		g.Expect(err).NotTo(HaveOccurred())

		layer := image.NewBlob("application/vnd.test.file", data)
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: entry.Name()}
		layers = append(layers, layer)
	}

	ref, err := oci.Parse("oci://" + r.Address + "/infrastructure-docker:v1.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = image.PushArtifact(t.Context(), registryClient(t, r), ref, "application/vnd.acme.config", layers...)
	g.Expect(err).NotTo(HaveOccurred())

	lint := func(args ...string) []string {
		out, _, err := clitest.Run(t.Context(), NewLintCommand, append(args, "-o", "json")...)
		g.Expect(err).To(HaveOccurred(), "a file is missing")

		report := struct{ Findings []contract.Finding }{}
		g.Expect(json.Unmarshal([]byte(out), &report)).To(Succeed(), "%s %v", out, err)

		var rules []string
		for _, f := range report.Findings {
			rules = append(rules, f.Rule+" "+filepath.Base(f.File))
		}

		return rules
	}

	want := lint(folder)
	g.Expect(want).To(ContainElements("files/required metadata.yaml", "files/names cluster-template.yml"))

	config := filepath.Join(t.TempDir(), "config.json")
	logIn(t, r, config)

	access := []string{"--registry-ca", ca, "--registry-config", config}
	g.Expect(lint(append(access, ref.String())...)).To(ConsistOf(want))
	g.Expect(lint(append(access, ref.String(), ref.String())...)).To(ConsistOf(append(want, want...)))
}
