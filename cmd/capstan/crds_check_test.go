package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

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

func TestCRDsCheckOfReleases(t *testing.T) {
	RegisterTestingT(t)
	dir := t.TempDir()
	old := writeComponents(dir, "old", "a: {type: string}, b: {type: string}")
	unsafe := writeComponents(dir, "unsafe", "b: {type: string}")
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
		{"the same", []string{old, "--from", old}, 0, "0 errors, 0 warnings, 0 notes", ""},
		{"a folder", []string{sound, "--from", sound + "/v1.0.0"}, 0, "0 errors, 0 warnings, 0 notes", ""},
		{"an error", []string{unsafe, "--from", old}, 1, "Error   samples.example.com   v1        spec.a   the field is removed;", "is not safe to apply: 1 error"},
		{"an error that is allowed", []string{unsafe, "--from", old, "--allow", "samples.example.com"}, 0, "explicitly allowed", ""},
		{"a warning", []string{warning, "--from", old}, 0, "0 errors, 1 warning, 0 notes", ""},
		{"yaml", []string{warning, "--from", old, "-o", "yaml"}, 0, "rule: maxLengthLowered", ""},
		{"no file", nil, 1, "", "give a file of components"},
		{"a file that is not there", []string{filepath.Join(dir, "none.yaml")}, 1, "", "none.yaml"},
		{"an old CRD", []string{broken, "--from", old}, 1, "", "broken.yaml: document 1: CustomResourceDefinition has the apiVersion apiextensions.k8s.io/v1beta1; only"},
		{"an unknown format", []string{old, "--from", old, "-o", "xml"}, 1, "", "--output xml is unknown"},
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

func TestCRDsCheckOfTheCluster(t *testing.T) {
	RegisterTestingT(t)
	b := bedtest.StartAPIServer(t)
	dir := t.TempDir()
	check := func(path string) (int, *safety.Report) {
		exitCode, stdout, stderr := runMain(t, "crds", "check", path, "--kubeconfig", b.Kubeconfig(), "-o", "json")
		report := &safety.Report{}
		Expect(json.NewDecoder(strings.NewReader(stdout)).Decode(report)).To(Succeed(), "%s %s", stdout, stderr)

		return exitCode, report
	}
	kubectl := func(input string) func() error {
		return func() error {
			cmd := exec.CommandContext(t.Context(), b.Binary("kubectl"), "--kubeconfig", b.Kubeconfig(), "apply", "-f", "-")
			cmd.Stdin = strings.NewReader(input)

			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}

			return nil
		}
	}
	old := fmt.Sprintf(components, "a: {type: string}, b: {type: string}")
	stricter := writeComponents(dir, "stricter", "a: {type: string, maxLength: 3}, b: {type: string}")

	exitCode, report := check(stricter)
	Expect(exitCode).To(BeZero(), "a CRD that is new breaks nothing")
	Expect(report.Findings).To(BeEmpty())

	_, crd, _ := strings.Cut(old, "---\n")
	Expect(kubectl(crd)()).To(Succeed())
	Eventually(
		kubectl("apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: short, namespace: default}\nspec: {a: abc}\n"),
	).WithTimeout(time.Minute).
		Should(Succeed())

	exitCode, report = check(stricter)
	Expect(exitCode).To(BeZero())
	Expect(report.Count(safety.Warning)).To(Equal(1))

	Expect(
		kubectl("apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: long, namespace: default}\nspec: {a: abcd}\n")(),
	).To(Succeed())

	exitCode, report = check(stricter)
	Expect(exitCode).To(Equal(1))
	Expect(report.Findings).To(HaveLen(1))
	Expect(
		report.Findings[0].Examples,
	).To(Equal([]safety.Example{{Namespace: "default", Name: "long", Fields: []string{"spec.a"}}}))
}
