package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const sampleProviders = "../../test/data/providers"

// runMain runs the program in a separate process: this test binary.
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

// TestMainProcess is not a test. It is the program in the process that runMain starts.
func TestMainProcess(t *testing.T) {
	args, ok := os.LookupEnv("CAPSTAN_ARGS")
	if !ok {
		t.Skip("only for runMain")
	}

	os.Args = append([]string{"capstan"}, strings.Split(args, "\n")...)

	main()
}

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
		{
			"an error",
			[]string{brokenProvider(t, "error")},
			1,
			"error references/webhook-service",
			"does not conform to the contracts: ",
		},
		{"a warning", []string{brokenProvider(t, "warning")}, 0, "1 warning", ""},
		{
			"a warning that counts",
			[]string{brokenProvider(t, "warning"), "--fail-on", "warning"},
			1,
			"1 warning",
			"1 warning",
		},
		{
			"annotations",
			[]string{brokenProvider(t, "error"), "-o", "github"},
			1,
			"bootstrap-kubeadm/v1.0.0/bootstrap-components.yaml,line=",
			"",
		},
		{"an unknown format", []string{sound, "-o", "xml"}, 1, "", "unknown --output \"xml\""},
		{"an unknown level", []string{sound, "--fail-on", "info"}, 1, "", "unknown --fail-on \"info\""},
		{"no folder", nil, 1, "", "expected a provider's folder, or one of its versions; usage: capstan chart lint DIR"},
		{"a missing version", []string{sound + "/v9.0.0"}, 1, "", "version v9.0.0 is not on offer"},
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

// components has one CRD, whose spec has the fields given in YAML, and an object that only text
// processing can read.
const components = `apiVersion: v1
kind: Secret
metadata: {name: credentials}
data: {credentials: ${CREDENTIALS}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Sample, listKind: SampleList, plural: samples, singular: sample}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}
`

// writeComponents writes components into a file.
func writeComponents(dir, name, fields string) string {
	path := filepath.Join(dir, name+".yaml")
	Expect(os.WriteFile(path, fmt.Appendf(nil, components, fields), 0o600)).To(Succeed())

	return path
}

func TestCRDsCheckExitCodes(t *testing.T) {
	RegisterTestingT(t)
	dir := t.TempDir()
	old := writeComponents(dir, "old", "a: {type: string}, b: {type: string}")
	stop := writeComponents(dir, "stop", "b: {type: string}")
	warning := writeComponents(dir, "warning", "a: {type: string, maxLength: 3}, b: {type: string}")
	broken := filepath.Join(dir, "broken.yaml")
	Expect(
		os.WriteFile(broken, []byte("apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n"), 0o600),
	).To(Succeed())

	sound := filepath.Join(sampleProviders, "bootstrap-kubeadm")
	for _, c := range []struct {
		name           string
		args           []string
		exitCode       int
		stdout, stderr string
	}{
		{"the same", []string{old, "--baseline", old}, 0, "0 errors, 0 warnings, 0 notes", ""},
		{"a folder", []string{sound, "--baseline", sound + "/v1.0.0"}, 0, "0 errors, 0 warnings, 0 notes", ""},
		{
			"an error",
			[]string{stop, "--baseline", old},
			1,
			"samples.example.com   v1        spec.a   the field is removed",
			"is not safe to apply: 1 error\n",
		},
		{"an allowed error", []string{stop, "--baseline", old, "--allow", "samples.example.com"}, 0, "allowed", ""},
		{"a warning", []string{warning, "--baseline", old}, 0, "0 errors, 1 warning, 0 notes", ""},
		{"yaml", []string{warning, "--baseline", old, "-o", "yaml"}, 0, "rule: maxLength", ""},
		{"no argument", nil, 1, "", "expected a file of components"},
		{"a missing file", []string{filepath.Join(dir, "none.yaml")}, 1, "", "none.yaml"},
		{
			"an old CRD",
			[]string{broken, "--baseline", old},
			1,
			"",
			"broken.yaml: document 1 is a CustomResourceDefinition of apiextensions.k8s.io/v1beta1; only",
		},
		{"an unknown format", []string{old, "--baseline", old, "-o", "xml"}, 1, "", "unknown --output \"xml\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			exitCode, stdout, stderr := runMain(t, append([]string{"crds", "check"}, c.args...)...)
			g.Expect(exitCode).To(Equal(c.exitCode), stderr)
			g.Expect(stdout).To(ContainSubstring(c.stdout))
			g.Expect(stderr).To(ContainSubstring(c.stderr))
		})
	}
}
