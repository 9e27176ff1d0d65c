package clusters

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

func TestCRDsCheckCluster(t *testing.T) {
	RegisterTestingT(t)
	b := bedtest.StartAPIServer(t)
	dir := t.TempDir()
	check := func(path string) (*safety.Report, error) {
		stdout, stderr, failure := clitest.Run(
			t.Context(), NewCRDsCommand, "check", path, "--kubeconfig", b.Kubeconfig(), "-o", "json")
		report := &safety.Report{}
		Expect(json.NewDecoder(strings.NewReader(stdout)).Decode(report)).To(Succeed(), "%s %s", stdout, stderr)

		return report, failure
	}
	kubectl := func(input string) func() error {
		return func() error {
			cmd := b.Command(t.Context(), "kubectl", "apply", "-f", "-")
			cmd.Stdin = strings.NewReader(input)

			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}

			return nil
		}
	}
	old := fmt.Sprintf(clitest.Components, "a: {type: string}, b: {type: string}")
	stricter := clitest.WriteComponents(t, dir, "stricter", "a: {type: string, maxLength: 3}, b: {type: string}")

	report, failure := check(stricter)
	Expect(failure).NotTo(HaveOccurred(), "a new CRD breaks nothing")
	Expect(report.Findings).To(BeEmpty())

	_, crd, _ := strings.Cut(old, "---\n")
	Expect(kubectl(crd)()).To(Succeed())
	Eventually(
		kubectl("apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: short, namespace: default}\nspec: {a: abc}\n"),
	).WithTimeout(time.Minute).
		Should(Succeed())

	report, failure = check(stricter)
	Expect(failure).NotTo(HaveOccurred())
	Expect(report.Count(safety.Warning)).To(Equal(1))

	Expect(
		kubectl("apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: long, namespace: default}\nspec: {a: abcd}\n")(),
	).To(Succeed())

	report, failure = check(stricter)
	Expect(failure).To(MatchError(HaveSuffix("is not safe to apply: 1 error")))
	Expect(report.Findings).To(HaveLen(1))
	Expect(
		report.Findings[0].Examples,
	).To(Equal([]safety.Example{{Namespace: "default", Name: "long", Fields: []string{"spec.a"}}}))
}
