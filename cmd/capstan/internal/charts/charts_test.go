package charts

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

const sampleProviders = "../../../../test/data/providers"

// run runs `capstan lint`, or a command of `capstan chart`, with arguments.
func run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()

	if args[0] == "lint" {
		return clitest.Run(t.Context(), NewLintCommand, args[1:]...)
	}

	return clitest.Run(t.Context(), NewCommand, args...)
}

func TestBuildSeparateCRDs(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	out, log, err := run(
		t,
		"build",
		oddFolder(t, "converted"),
		"--destination",
		dir,
		"--crds",
		"separate",
		"--namespace",
		"elsewhere",
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log).NotTo(ContainSubstring("the helm command"))

	lines := strings.Split(out, "\n")
	g.Expect(lines[0]).To(Equal(filepath.Join(dir, "infrastructure-odd-1.0.0-crds.yaml")))
	g.Expect(lines[1]).To(Equal(filepath.Join(dir, "infrastructure-odd-1.0.0.tgz")))

	crds, err := os.ReadFile(lines[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(crds)).To(And(
		ContainSubstring("namespace: elsewhere"),
		ContainSubstring("cert-manager.io/inject-ca-from: elsewhere/odd-serving-cert"),
		ContainSubstring("maximum: 9223372036854775807"),
		ContainSubstring("cluster.x-k8s.io/provider: infrastructure-odd"),
		ContainSubstring("plain: stays,\n"),
		Not(ContainSubstring("odd-system")),
	))

	archive, err := os.ReadFile(lines[1])
	g.Expect(err).NotTo(HaveOccurred())
	built, err := chart.Read(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(built.CRDs).To(BeEmpty())
	g.Expect(lines[2]).To(Equal(chart.Digest(archive)))
}

// TestBuildTooLarge: what cannot be installed, and by whom, is what the operator and Helm refuse.
func TestBuildTooLarge(t *testing.T) {
	const helm = `Warning: the helm command cannot install infrastructure-odd-1\.0\.0\.tgz: its release would ` +
		`have [1-3]\d\d\d KiB, and Kubernetes stores at most 1024 KiB; build it with --crds separate\.`

	for kib, want := range map[int]string{
		600: `^` + helm + ` The operator can install it, because its releases have no CRDs and templates\.\n`,
		1600: `^Warning: the operator does not install this chart: infrastructure-odd-1\.0\.0\.tgz: the chart of ` +
			`infrastructure-odd v1\.0\.0 has 1\d\d\d KiB, and a ConfigMap has room for 896 KiB; .*\.\n` + helm + `\n`,
	} {
		t.Run(fmt.Sprint(kib), func(t *testing.T) {
			g := NewWithT(t)
			random := rand.NewChaCha8([32]byte{})
			noise := make([]byte, kib<<10)
			_, _ = random.Read(noise)
			folder := oddFolder(t, fmt.Sprintf("%x", noise))

			_, log, err := run(t, "build", folder, "--destination", t.TempDir())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(log).To(MatchRegexp(want))

			_, log, err = run(t, "build", folder, "--destination", t.TempDir(), "--crds", "separate")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(log).NotTo(Or(ContainSubstring("the helm command"), ContainSubstring("the operator")))
		})
	}
}

// TestFolders: every command that reads a provider's folder finds the version in it, with and without "v", and
// accepts flags for what the names of folders do not tell.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	release := os.DirFS(filepath.Join(sampleProviders, "infrastructure-docker", "v1.0.0"))

	for _, folder := range []string{"infrastructure-docker/1.0.0", "example/v1.0.0", "out"} {
		NewWithT(t).Expect(os.CopyFS(filepath.Join(dir, folder), release)).To(Succeed())
	}

	t.Chdir(dir)

	for _, command := range [][]string{{"build"}, {"lint"}} {
		t.Run(command[0], func(t *testing.T) {
			g := NewWithT(t)
			succeed := func(args ...string) {
				t.Helper()

				_, _, err := run(t, append(command, args...)...)
				g.Expect(err).NotTo(HaveOccurred(), "%v", args)
			}
			fail := func(message string, args ...string) {
				t.Helper()

				_, _, err := run(t, append(command, args...)...)
				g.Expect(err).To(MatchError(ContainSubstring(message)), "%v", args)
			}

			succeed("infrastructure-docker")
			succeed("infrastructure-docker/1.0.0")
			succeed("infrastructure-docker/v1.0.0")
			succeed("infrastructure-docker", "--version", "v1.0.0")
			succeed("example", "--name", "docker")
			succeed("example/v1.0.0", "--name", "docker", "--type", "infrastructure")
			succeed("out", "--name", "docker", "--version", "v1.0.0")

			fail("version v1.0.1 is not available", "infrastructure-docker", "--version", "v1.0.1")
			fail("it is not known which provider this is; set --type and --name", "example")
			fail("it is not known which provider this is; set --type and --name", "example/v1.0.0")
			fail("it is not known which provider this is", "out", "--version", "v1.0.0")
			fail("this is the folder of infrastructure-docker", "infrastructure-docker", "--name", "other")
		})
	}

	g := NewWithT(t)
	_, _, err := run(t, "build", "out", "--name", "docker")
	g.Expect(err).To(MatchError("out: the name of the folder is no version; set --version"))

	one, _, err := run(t, "build", "out", "--name", "docker", "--version", "1.0.0")
	g.Expect(err).NotTo(HaveOccurred())

	other, _, err := run(t, "build", "infrastructure-docker")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).To(Equal(one), "the chart of the same version")

	t.Chdir("example/v1.0.0")

	out, _, err := run(t, "build", ".", "--name", "docker")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(HavePrefix("infrastructure-docker-1.0.0.tgz\n"))
}

// TestSeveralFolders: what is wrong with one of several folders does not keep the others from being built or checked.
func TestSeveralFolders(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir() + "/charts/new" // does not exist yet
	docker, aws := sampleProviders+"/infrastructure-docker", sampleProviders+"/infrastructure-aws/v1.0.0"

	out, _, err := run(t, "build", docker, filepath.Join(dir, "none"), aws, "--destination", dir)
	g.Expect(err).To(MatchError(ContainSubstring("none does not exist")))
	g.Expect(out).To(MatchRegexp(
		`^\S+/charts/new/infrastructure-docker-1\.1\.0\.tgz\nsha256:\w+\n\S+/infrastructure-aws-1\.0\.0\.tgz\nsha256:\w+\n$`))

	_, _, err = run(t, "build", docker, aws, "--destination", filepath.Join(dir, "one.tgz"))
	g.Expect(err).To(MatchError(ContainSubstring("is the file of a single chart")))

	out, _, err = run(t, "build", docker, "--destination", filepath.Join(dir, "another", "one.tgz"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(MatchRegexp(`^\S+/charts/new/another/one\.tgz\n`))

	_, _, err = run(t, "build", docker, "--destination", filepath.Join(dir, "another", "one.tgz", "below"))
	g.Expect(err).To(MatchError(ContainSubstring("one.tgz: not a directory")))

	out, _, err = run(t, "lint", docker, filepath.Join(dir, "none"), aws, "--fail-on", "warning")
	g.Expect(err).To(MatchError(And(
		ContainSubstring("none does not exist"),
		ContainSubstring("at least one of the 3 does not conform to the contracts"),
	)))
	g.Expect(out).To(And(ContainSubstring("infrastructure-docker/v1.1.0"), ContainSubstring("infrastructure-aws/v1.0.0")))
}

func TestInvalidArguments(t *testing.T) {
	noChart := filepath.Join(t.TempDir(), "no-chart.tgz")
	NewWithT(t).Expect(os.WriteFile(noChart, []byte("text"), 0o600)).To(Succeed())

	for name, c := range map[string]struct {
		args    []string
		message string
	}{
		"a namespace without separate CRDs": {
			[]string{"build", sampleProviders + "/cluster-api", "--namespace", "x"},
			"add --crds separate",
		},
		"an unknown place for CRDs": {
			[]string{"build", sampleProviders + "/cluster-api", "--crds", "none"},
			`unknown --crds "none"; use chart or separate`,
		},
		"a missing folder": {
			[]string{"build", filepath.Join(t.TempDir(), "none")},
			"does not exist; correct its path",
		},
		"another file": {
			[]string{"lint", "charts_test.go"},
			"charts_test.go is neither a folder nor the archive of a chart",
		},
		"a file that is not a chart": {[]string{"lint", noChart}, noChart + ": chart archive: not gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, c.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

// oddFolder returns the folder of a provider that has a CRD with a conversion webhook, and a CRD with
// a description.
func oddFolder(t *testing.T, description string) string {
	t.Helper()
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "infrastructure-odd")
	version := filepath.Join(folder, "v1.0.0")
	g.Expect(os.MkdirAll(version, 0o755)).To(Succeed())

	metadata := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
		"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"
	g.Expect(os.WriteFile(filepath.Join(version, "metadata.yaml"), []byte(metadata), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(version, "infrastructure-components.yaml"), []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: odd-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: odds.odd.example.com
  annotations:
    cert-manager.io/inject-ca-from: odd-system/odd-serving-cert
spec:
  maximum: 9223372036854775807
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {service: {name: odd, namespace: odd-system, path: /convert}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: evens.odd.example.com
spec:
  plain: stays, # as it is
  description: "`+description+`"
`), 0o600)).To(Succeed())

	return folder
}

// TestBuildByName: the chart of a known provider is built from where it is published, and an argument that is neither a
// path nor a provider is named as what it is.
func TestBuildByName(t *testing.T) {
	clitest.WithoutConfiguration(t)
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "clusterctl.yaml")
	g.Expect(os.WriteFile(file, []byte(clitest.Configuration(t, sampleProviders)), 0o600)).To(Succeed())

	dir := t.TempDir()
	_, _, err := clitest.Run(t.Context(), NewCommand, "build", "docker:v1.0.0", "-d", dir, "--config", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.Join(dir, "infrastructure-docker-1.0.0.tgz")).To(BeARegularFile())

	_, _, err = clitest.Run(t.Context(), NewCommand, "build", "docker:v1.0.0", "--name", "a", "--config", file)
	g.Expect(err).To(MatchError(HavePrefix("infrastructure-docker is a known provider; leave out --type")))

	for argument, message := range map[string]string{
		"dokcer":  "there is no file or folder dokcer: unknown provider dokcer; did you mean docker? `capstan providers`",
		"kubeadm": "there is no file or folder kubeadm: there are several providers with the name kubeadm; use one of",
	} {
		_, _, err := clitest.Run(t.Context(), NewCommand, "build", argument, "--config", file)
		g.Expect(err).To(MatchError(HavePrefix(message)))
	}
}
