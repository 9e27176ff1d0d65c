package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/fakesource"
)

// examples returns the examples of a command and of all below it, by the command's path.
func examples(cmd *cobra.Command) map[string][]string {
	text := strings.ReplaceAll(cmd.Example, "\\\n", "")
	found := map[string][]string{cmd.CommandPath(): strings.Split(text, "\n")}

	for _, sub := range cmd.Commands() {
		if sub.Name() != "completion" && sub.Name() != "help" {
			maps.Copy(found, examples(sub))
		}
	}

	return found
}

// TestExamples runs the examples of all commands as they are printed, in a folder with the files that they name. The
// registry and the servers of the examples are local ones, images are not copied, and there is no cluster: what needs
// one must fail for that reason alone, after its arguments were understood.
func TestExamples(t *testing.T) {
	w := newExampleFolder(t)
	all := examples(newRootCommand(&cli.Options{Program: cli.ProgramName}))

	for _, path := range slices.Sorted(maps.Keys(all)) {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			w.reset(t)

			for _, example := range all[path] {
				g.Expect(example).To(HavePrefix("  "))

				output, err := w.run(t, strings.TrimSpace(example))
				if err != nil {
					g.Expect(output).To(Or(
						ContainSubstring("Error: find the management cluster: no kubeconfig was found"),
						ContainSubstring("does not conform to the contracts"), // the samples do not
					), example)
				}
			}

			g.Expect(all[path][0]).To(HavePrefix("  "+path), "a command's help begins with an example of it")
		})
	}
}

// exampleFolder is where examples run.
type exampleFolder struct {
	path     string
	config   string
	environ  []string
	replacer *strings.Replacer
}

// run runs an example, and returns its output.
func (w *exampleFolder) run(t *testing.T, example string) (string, error) {
	t.Helper()

	copiesImages := !strings.Contains(example, "--archive") && !strings.Contains(example, "--files")
	if strings.HasPrefix(example, "capstan mirror") && copiesImages {
		example += " --charts-only"
	}

	if strings.HasPrefix(example, "helm install") {
		return "", nil // an example of another program
	}

	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", w.replacer.Replace(example))
	cmd.Dir, cmd.Env = w.path, w.environ

	output, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", example, output)

	return string(output), err
}

// newExampleFolder creates the files and servers that the examples name.
func newExampleFolder(t *testing.T) *exampleFolder {
	t.Helper()
	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	w := &exampleFolder{path: t.TempDir(), config: "providers:\n"}
	server := &fakesource.Server{}

	for _, release := range [][3]string{
		{"cluster-api", "v1.13.5", "core"},
		{"bootstrap-kubeadm", "v1.13.5", "bootstrap"},
		{"control-plane-kubeadm", "v1.13.5", "control-plane"},
		{"infrastructure-aws", "v2.10.3", "infrastructure"},
		{"infrastructure-aws", "v2.11.1", "infrastructure"},
		{"infrastructure-azure", "v1.26.0", "infrastructure"},
	} {
		label, version := release[0], release[1]
		folder := filepath.Join(w.path, "providers", label, version)
		w.release(t, strings.Replace(label, "azure", "aws", 1), version, folder)

		project := "kubernetes-sigs/cluster-api-provider-aws"
		if label != "infrastructure-aws" {
			project = "kubernetes-sigs/" + label
		}

		g.Expect(server.PublishFolder(project, version, folder)).To(Succeed())
	}

	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	for _, p := range [][4]string{
		{"cluster-api", "CoreProvider", "cluster-api", "core"},
		{"aws", "InfrastructureProvider", "cluster-api-provider-aws", "infrastructure"},
	} {
		w.config += fmt.Sprintf("- {name: %s, type: %s, url: %s/kubernetes-sigs/%s/releases/latest/%s-components.yaml}\n",
			p[0], p[1], server.URL(), p[2], p[3])
	}

	w.release(t, "infrastructure-aws", "v2.11.1", filepath.Join(w.path, "out"))

	w.programs(t)
	w.servers(t, server.URL())
	w.reset(t)

	for _, prepare := range []string{
		"capstan chart build providers/infrastructure-aws/v2.10.3",
		"capstan chart build providers/infrastructure-aws/v2.11.1",
		"capstan mirror infrastructure-aws:v2.11.1 --source providers --charts-only --to oci://registry.example.com",
	} {
		output, err := w.run(t, prepare)
		g.Expect(err).NotTo(HaveOccurred(), output)
	}

	return w
}

// reset writes the files that examples name, and removes those that others have written.
func (w *exampleFolder) reset(t *testing.T) {
	t.Helper()
	g := NewWithT(t)

	for name, content := range map[string]string{
		"clusterctl.yaml": w.config,
		"providers.yaml":  provider,
		"aws.yaml":        provider,
		"values.yaml":     "infrastructure: {aws: {version: v2.11.1}}\n",
		"variables.yaml":  "AWS_B64ENCODED_CREDENTIALS: none\n",
	} {
		g.Expect(os.WriteFile(filepath.Join(w.path, name), []byte(content), 0o600)).To(Succeed())
	}
}

// provider is a resource that the examples name.
const provider = `apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: aws, namespace: capa-system}
spec: {version: v2.11.1}
`

// release writes a sample provider to a folder as if it had another version.
func (w *exampleFolder) release(t *testing.T, label, version, folder string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(sampleProviders, label, "v1.0.0")))).To(Succeed())

	file := filepath.Join(folder, "metadata.yaml")
	metadata, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())

	number := strings.Split(strings.TrimPrefix(version, "v"), ".")
	metadata = []byte(strings.NewReplacer("major: 1", "major: "+number[0], "minor: 0", "minor: "+number[1]).
		Replace(string(metadata)))
	g.Expect(os.WriteFile(file, metadata, 0o600)).To(Succeed())

	if strings.HasPrefix(label, "infrastructure-") {
		template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLUSTER_NAME}', namespace: '${NAMESPACE}'}\n"
		g.Expect(os.WriteFile(filepath.Join(folder, "cluster-template.yaml"), []byte(template), 0o600)).To(Succeed())
	}
}

// programs makes this test binary available as capstan, and lets helm and kubectl do nothing.
func (w *exampleFolder) programs(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	executable, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())

	bin := t.TempDir()

	for name, script := range map[string]string{
		"capstan": `CAPSTAN_ARGS=$(printf '%s\n' "$@") exec ` + executable + " -test.run=^TestMainProcess$",
		"helm":    "cat values.yaml",
		"kubectl": "cat > /dev/null",
	} {
		g.Expect(os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	}

	configured := t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(configured, "cluster-api"), 0o700)).To(Succeed())
	g.Expect(os.Symlink(
		filepath.Join(w.path, "clusterctl.yaml"), filepath.Join(configured, "cluster-api/clusterctl.yaml"),
	)).To(Succeed())

	w.environ = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+configured)
}

// servers replaces the servers of the examples.
func (w *exampleFolder) servers(t *testing.T, github string) {
	t.Helper()
	g := NewWithT(t)
	registry, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir(), TLS: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(registry.Stop)

	authorities := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(authorities, registry.CA, 0o600)).To(Succeed())
	w.environ = append(w.environ, "SSL_CERT_FILE="+authorities)

	w.replacer = strings.NewReplacer("oci://registry.example.com", "oci://"+registry.Address, "https://github.com", github)
}
