package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const sampleProviders = "../../test/data/providers"

// broken copies a sample provider and breaks it: warning by a missing kind in metadata.yaml, error
// by a Service that is gone.
func broken(t *testing.T, level string) string {
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

// runMain runs the program in a process of its own, which is this test's binary.
func runMain(t *testing.T, args ...string) (exitCode int, stdout, stderr string) {
	t.Helper()

	executable, err := os.Executable()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestMainProcess$")

	cmd.Env = append(os.Environ(), "CAPSTAN_ARGS="+strings.Join(args, "\n"))

	var out, errs bytes.Buffer

	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit := new(exec.ExitError)
		NewWithT(t).Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
		exitCode = exit.ExitCode()
	}

	return exitCode, out.String(), errs.String()
}

// TestMainProcess is the program when runMain starts it, and no test.
func TestMainProcess(t *testing.T) {
	args, ok := os.LookupEnv("CAPSTAN_ARGS")
	if !ok {
		t.Skip("runMain starts it")
	}

	os.Args = append([]string{"capstan"}, strings.Split(args, "\n")...)

	main()
}

func TestLintExitCodes(t *testing.T) {
	sound := filepath.Join(sampleProviders, "bootstrap-kubeadm")
	for _, c := range []struct {
		name     string
		args     []string
		exitCode int
		stdout   string
		stderr   string
	}{
		{"sound", []string{sound}, 0, "no findings", ""},
		{"sound, by version", []string{sound + "/v1.0.0", "--fail-on", "warning"}, 0, "no findings", ""},
		{"an error", []string{broken(t, "error")}, 1, "error references/webhook-service", "does not keep the contracts: "},
		{"a warning", []string{broken(t, "warning")}, 0, "1 warning", ""},
		{"a warning that counts", []string{broken(t, "warning"), "--fail-on", "warning"}, 1, "1 warning", "1 warning"},
		{"annotations", []string{broken(t, "error"), "-o", "github"}, 1, "bootstrap-kubeadm/v1.0.0/bootstrap-components.yaml,line=", ""},
		{"an unknown format", []string{sound, "-o", "xml"}, 1, "", "--output xml is unknown"},
		{"an unknown level", []string{sound, "--fail-on", "info"}, 1, "", "--fail-on info is unknown"},
		{"no folder", nil, 1, "", "give the provider's folder"},
		{"a version that is not there", []string{sound + "/v9.0.0"}, 1, "", "version v9.0.0 is not on offer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			exitCode, stdout, stderr := runMain(t, append([]string{"chart", "lint"}, c.args...)...)
			g.Expect(exitCode).To(Equal(c.exitCode), stderr)
			g.Expect(stdout).To(ContainSubstring(c.stdout))
			g.Expect(stderr).To(ContainSubstring(c.stderr))
		})
	}
}

func TestLintFindsMissingAndMisnamedFiles(t *testing.T) {
	g := NewWithT(t)
	folder := broken(t, "warning")
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
