package lint_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/lint"
)

func TestText(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	replaceMetadata("minor: 2", "minor: 1")(t, b)
	replace(
		"controller:v1.2.3", "controller",
		"serviceAccountName: example-manager", "serviceAccountName: other",
		"EXAMPLE_", "",
	)(t, b)

	text := lint.Text(lint.Rules(), lint.Bundle(b, nil))
	g.Expect(text).To(HavePrefix("error metadata/series: "))
	g.Expect(text).To(MatchRegexp(
		`(?m)^  components.yaml  Deployment example-controller  runs as ServiceAccount other, which is missing$`))
	g.Expect(text).To(MatchRegexp(`(?m)^  Why:     Kubernetes creates no Pod`))
	g.Expect(text).To(MatchRegexp(`(?m)^  Remedy:  Add the ServiceAccount`))
	g.Expect(text).To(HaveSuffix("\n\n2 errors, 1 warning, 1 info\n"))
	g.Expect(lint.Text(lint.Rules(), nil)).To(Equal("no findings\n"))
}

// TestPages: a finding refers to the page about the kind of its object.
func TestPages(t *testing.T) {
	g := NewWithT(t)
	b := infrastructureProvider()
	replace("plural: examplemachines}\n  scope: Namespaced", "plural: examplemachines}\n  scope: Cluster",
		"plural: exampleconfigs}\n  scope: Namespaced", "plural: exampleconfigs}\n  scope: Cluster")(t, b)

	const pages = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/"

	found := findingsOf("crd/scope", lint.Bundle(b, nil))
	g.Expect(found).To(HaveLen(2))
	g.Expect(found[0].Contract).To(Equal(pages + "infra-machine#all-resources-scope"))
	g.Expect(lint.Text(lint.Rules(), found)).To(ContainSubstring("See:     " + pages + "bootstrap-config#all-resources-scope\n" +
		"           " + pages + "infra-machine#all-resources-scope\n"))
}

// TestObjectsInClusters: a finding may concern an object in a cluster, and rules that are not in this package.
func TestObjectsInClusters(t *testing.T) {
	rule := lint.Rule{Name: "a/b", Level: lint.Error, Contract: "https://example.com", Requirement: "It works.",
		Why: "It fails.", Remedy: "Fix it."}
	finding := rule.Finding("is wrong")
	finding.Kind, finding.Object = "Machine", "default/one"

	NewWithT(t).Expect(lint.Text([]lint.Rule{rule}, []lint.Finding{finding})).To(Equal(
		"error a/b: It works.\n  Machine default/one  is wrong\n  Why:     It fails.\n  Remedy:  Fix it.\n" +
			"  See:     https://example.com\n\n1 error\n"))
}

func TestMarkdownTable(t *testing.T) {
	rule := lint.Rule{Name: "a/b", Level: lint.Error, Contract: "https://example.com", Requirement: "It is <a> | <b>."}
	NewWithT(t).Expect(lint.MarkdownTable([]lint.Rule{rule})).To(Equal("| Rule | Level | Requirement |\n" +
		"| --- | --- | --- |\n| [a/b](https://example.com) | error | It is &lt;a> \\| &lt;b>. |\n"))
}
