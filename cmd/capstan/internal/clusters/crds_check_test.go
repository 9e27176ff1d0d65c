package clusters

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

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/test/bed"
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

func TestCRDsCheckCluster(t *testing.T) {
	RegisterTestingT(t)
	b, err := bed.Start(t.Context(), bed.Options{Nodes: -1, WithoutCertManager: true})
	Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.Stop() })
	dir := t.TempDir()
	check := func(path string) (error, *safety.Report) {
		stdout, stderr, failure := clitest.Run(
			t.Context(), NewCRDsCommand, "check", path, "--kubeconfig", b.Kubeconfig(), "-o", "json")
		report := &safety.Report{}
		Expect(json.NewDecoder(strings.NewReader(stdout)).Decode(report)).To(Succeed(), "%s %s", stdout, stderr)

		return failure, report
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

	failure, report := check(stricter)
	Expect(failure).NotTo(HaveOccurred(), "a new CRD breaks nothing")
	Expect(report.Findings).To(BeEmpty())

	_, crd, _ := strings.Cut(old, "---\n")
	Expect(kubectl(crd)()).To(Succeed())
	Eventually(
		kubectl("apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: short, namespace: default}\nspec: {a: abc}\n"),
	).WithTimeout(time.Minute).
		Should(Succeed())

	failure, report = check(stricter)
	Expect(failure).NotTo(HaveOccurred())
	Expect(report.Count(safety.Warning)).To(Equal(1))

	Expect(
		kubectl("apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: long, namespace: default}\nspec: {a: abcd}\n")(),
	).To(Succeed())

	failure, report = check(stricter)
	Expect(failure).To(MatchError(HaveSuffix("is not safe to apply: 1 error")))
	Expect(report.Findings).To(HaveLen(1))
	Expect(
		report.Findings[0].Examples,
	).To(Equal([]safety.Example{{Namespace: "default", Name: "long", Fields: []string{"spec.a"}}}))
}
