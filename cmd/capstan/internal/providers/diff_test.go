package providers

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// objects parses YAML documents.
func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()

	var all []*unstructured.Unstructured

	for _, d := range documents {
		o := &unstructured.Unstructured{}
		NewWithT(t).Expect(yaml.Unmarshal([]byte(d), &o.Object)).To(Succeed())
		all = append(all, o)
	}

	return all
}

func TestPrintDiff(t *testing.T) {
	before := objects(
		t,
		"{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: ns}, data: {changed: "+
			"b2xkLXNlY3JldA==, same: c2FtZS1zZWNyZXQ=, dropped: ZHJvcHBlZC1zZWNyZXQ=}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: b}}",
		"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: moved, namespace: ns}, spec: "+
			"{minAvailable: 1}}",
		"{apiVersion: v1, kind: Service, metadata: {name: dropped, namespace: ns}, spec: {ports: [{port: 443}]}}",
	)
	after := objects(
		t,
		"{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: ns}, data: {changed: "+
			"bmV3LXNlY3JldA==, same: c2FtZS1zZWNyZXQ=}, stringData: {added: added-secret}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: b}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: moved, namespace: ns}, spec: {minAvailable: 1}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: added}, rules: []}",
	)
	changes, err := objectdiff.Compare(before, after, 3)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	d := &difference{
		Provider:      "infrastructure-x",
		From:          "v1.0.0",
		To:            "v1.3.0",
		SkippedMinors: []string{"v1.1", "v1.2"},
		Objects:       changes,
		NewCRDs:       []string{"news.x"},
		ChangedCRDs:   []string{"olds.x"},
	}
	printed := func(printer cli.Printer, d *difference) string { return clitest.Printed(t, printer, d.print) }
	text := printed(cli.Printer{}, d)
	clitest.Golden(t, "diff.txt", text)
	NewWithT(t).Expect(text).NotTo(Or(ContainSubstring("secret\n"), ContainSubstring("==")), "a Secret's value")
	clitest.Golden(t, "diff-colored.txt", printed(cli.Printer{Color: true}, d))
	clitest.Golden(t, "diff.json", printed(cli.Printer{Format: cli.FormatJSON}, d))

	none := &difference{Provider: "infrastructure-x", To: "v1.1.0"}
	clitest.Golden(t, "diff-none.txt", printed(cli.Printer{}, none))
}
