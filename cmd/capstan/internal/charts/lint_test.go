package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/fakesource"
)

func TestLintFormats(t *testing.T) {
	folder := clitest.BrokenProvider(t, sampleProviders, "warning")

	for format, want := range map[string]string{
		"table": "1 warning",
		"json":  `"level": "warning"`,
		"yaml":  "level: warning\n",
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
	g.Expect(os.Rename(filepath.Join(release, "core-components.yaml"), filepath.Join(release, "my-components.yaml"))).
		To(Succeed())

	opened, err := openFolder(t.Context(), folder, &identity{})
	g.Expect(isMissing(err)).To(BeTrue())
	findings, err := opened.lint(&identity{})
	g.Expect(err).NotTo(HaveOccurred())

	rules := map[string]string{}
	for _, f := range findings {
		rules[f.Rule] = f.File
	}

	g.Expect(rules).To(HaveKeyWithValue("files/required", filepath.Join(release, "metadata.yaml")))
	g.Expect(rules).To(HaveKeyWithValue("files/names", filepath.Join(release, "my-components.yaml")))
}

// TestLintInputs: a provider is checked wherever it is, and if it is not known which provider it is, the
// error says how to tell.
func TestLintInputs(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	release := filepath.Join(sampleProviders, "infrastructure-docker", "v1.0.0")

	flat := filepath.Join(dir, "out")
	g.Expect(os.CopyFS(flat, os.DirFS(release))).To(Succeed())

	renamed := filepath.Join(dir, "renamed", "v1.0.0")
	g.Expect(os.CopyFS(renamed, os.DirFS(release))).To(Succeed())

	archive := filepath.Join(dir, "docker.tgz")
	_, _, err := run(t, "build", release, "--destination", archive)
	g.Expect(err).NotTo(HaveOccurred())

	server := &fakesource.Server{}
	g.Expect(server.PublishFolder("owner/docker", "v1.0.0", release)).To(Succeed())
	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	web := server.URL() + "/owner/docker/releases/tag/v1.0.0"

	for _, args := range [][]string{
		{release},
		{flat, "--name", "docker", "--version", "v1.0.0"},
		{flat, "--name", "docker", "--type", "infrastructure", "--version", "v1.0.5"},
		{renamed, "--name", "docker"},
		{archive},
		{web, "--name", "docker", "--type", "infrastructure"},
	} {
		out, _, err := run(t, append([]string{"lint"}, args...)...)
		g.Expect(err).NotTo(HaveOccurred(), "%v", args)
		g.Expect(out).To(ContainSubstring("warning infra-machine/template: "), "%v", args)
		g.Expect(out).To(HaveSuffix("2 warnings, 1 info\n"), "%v", args)
	}

	for message, args := range map[string][]string{
		"it is not known which provider this is; set --type and --name": {flat, "--version", "v1"},
		"the name of the folder is no version; set --version":           {flat, "--name", "docker"},
		web + ": it is not known which provider this is":                {web},
		`unknown --type "infra"; use one of core, bootstrap, control-plane, infrastructure, `: {
			flat, "--name", "docker", "--version", "v1", "--type", "infra",
		},
		"leave out --type and --name":        {release, "--name", "other"},
		"leave out --version, or correct it": {release, "--version", "v1.0.1"},
		"are for a single provider":          {release, flat, "--name", "docker"},
		"docker.tgz: chart archive":          {emptyFile(t, "docker.tgz")},
	} {
		_, _, err := run(t, append([]string{"lint"}, args...)...)
		g.Expect(err).To(MatchError(ContainSubstring(message)))
	}
}

// TestLintRendersNoTemplatesOfOthers: only the objects of an archive are checked, whatever its templates are.
func TestLintRendersNoTemplatesOfOthers(t *testing.T) {
	g := NewWithT(t)
	archive := filepath.Join(t.TempDir(), "docker.tgz")
	release := filepath.Join(sampleProviders, "infrastructure-docker", "v1.0.0")

	_, _, err := run(t, "build", release, "--destination", archive)
	g.Expect(err).NotTo(HaveOccurred())

	file, err := os.Open(archive)
	g.Expect(err).NotTo(HaveOccurred())

	defer file.Close()

	c, err := chart.Read(file)
	g.Expect(err).NotTo(HaveOccurred())

	for i := range c.Files {
		if strings.HasPrefix(c.Files[i].Name, chart.TemplatesDir) {
			c.Files[i].Data = []byte(`{{ fail "it was rendered" }}`)
		}
	}

	changed, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(archive, changed, 0o600)).To(Succeed())

	out, _, err := run(t, "lint", archive)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(HaveSuffix("2 warnings, 1 info\n"))
}

// TestNestedKeysEnd: keys with expressions below each other take no longer than others.
func TestNestedKeysEnd(t *testing.T) {
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "infrastructure-nested", "v1.0.0")
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())

	for file, content := range map[string]string{
		"infrastructure-components.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: " +
			strings.Repeat("{'${A:=a}': ", 50) + "x" + strings.Repeat("}", 50),
		"metadata.yaml": "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
			"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]\n",
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600)).To(Succeed())
	}

	for _, args := range [][]string{{"lint", folder}, {"build", folder, "--destination", t.TempDir()}} {
		ended := make(chan error, 1)

		go func() {
			_, _, err := run(t, args...)
			ended <- err
		}()

		g.Eventually(ended, 5*time.Second).Should(Receive(BeNil()), "%v", args)
	}
}

// emptyFile creates an empty file with a name.
func emptyFile(t *testing.T, name string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), name)
	NewWithT(t).Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())

	return path
}

// TestKnownPublishers: the address of a provider that clusterctl knows tells which one it is, unless a
// project publishes several.
func TestKnownPublishers(t *testing.T) {
	g := NewWithT(t)
	known, err := catalog.Load(emptyFile(t, "clusterctl.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	const sigs = "https://github.com/kubernetes-sigs/"

	for address, label := range map[string]string{
		sigs + "cluster-api-provider-aws/releases/tag/v2.11.1":                       "infrastructure-aws",
		sigs + "cluster-api-provider-aws":                                            "infrastructure-aws",
		sigs + "cluster-api/releases/download/v1.14.0/control-plane-components.yaml": "control-plane-kubeadm",
		sigs + "cluster-api/releases/tag/v1.14.0":                                    "",
		"https://github.com/other/cluster-api-provider-aws/releases/tag/v2.11.1":     "",
	} {
		g.Expect(publisherOf(known, address).Label).To(Equal(label), address)
	}
}
