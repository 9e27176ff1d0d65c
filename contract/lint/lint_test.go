package lint_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/lint"
)

// brokenCase breaks one rule of a provider that otherwise follows all rules.
type brokenCase struct {
	rule     string
	name     string
	provider func() *bundle.Bundle
	edit     edit
	// message is part of the finding, including its object.
	message string
}

func TestBrokenRules(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range slices.Concat(
		brokenFiles, brokenComponents, brokenReferences, brokenCRDs, brokenControlPlanes, brokenContracts,
		brokenTemplates) {
		tested[c.rule] = true
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			g := NewWithT(t)
			b := c.provider()
			c.edit(t, b)
			found := findingsOf(c.rule, lint.Bundle(b, nil))
			g.Expect(found).To(HaveLen(1))
			g.Expect(strings.TrimSpace(found[0].Kind + " " + found[0].Object + " " + found[0].Message)).
				To(ContainSubstring(c.message))
		})
	}

	for _, rule := range lint.Rules() {
		NewWithT(t).Expect(tested).To(HaveKey(rule.Name))
	}
}

// findingsOf returns the findings of one rule.
func findingsOf(rule string, findings []contract.Finding) []contract.Finding {
	return slices.DeleteFunc(findings, func(f contract.Finding) bool { return f.Rule != rule })
}

// TestLevels: an error is something that fails, with clusterctl or with Cluster API's core.
func TestLevels(t *testing.T) {
	levels := map[string]contract.Level{}
	for _, rule := range lint.Rules() {
		levels[rule.Name] = rule.Level
	}

	g := NewWithT(t)
	g.Expect(levels).To(HaveKeyWithValue("components/image-name", contract.Error), "clusterctl rejects the provider")
	g.Expect(levels).To(HaveKeyWithValue("components/job-image-name", contract.Warning))
	g.Expect(levels).To(HaveKeyWithValue("components/image-version", contract.Warning))
	g.Expect(levels).To(HaveKeyWithValue("components/provider-label", contract.Info), "installers set it themselves")
	g.Expect(levels).To(HaveKeyWithValue("references/owner-finalizers", contract.Info), "depends on code")
	g.Expect(levels).To(HaveKeyWithValue("crd/contract-label-outdated", contract.Warning),
		"core accepts v1beta1 in v1beta2")
}

func TestNoFindings(t *testing.T) {
	for _, c := range soundCases {
		t.Run(c.name, func(t *testing.T) {
			b := c.provider()
			c.edit(t, b)
			NewWithT(t).Expect(lint.Bundle(b, nil)).To(BeEmpty())
		})
	}
}

// TestWithoutSchemas: the fields of a control plane are unknown if its CRD has no schema, so there are no findings.
func TestWithoutSchemas(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	c, err := bundle.ParseComponents(b.Components)
	g.Expect(err).NotTo(HaveOccurred())

	for _, doc := range c.Documents {
		versions, _, _ := unstructured.NestedSlice(doc.Object.Object, "spec", "versions")
		for _, v := range versions {
			v.(map[string]any)["schema"] = nil
		}

		if versions != nil {
			g.Expect(unstructured.SetNestedSlice(doc.Object.Object, versions, "spec", "versions")).To(Succeed())
		}
	}

	g.Expect(lint.Bundle(b, c)).To(BeEmpty())
}

func TestNames(t *testing.T) {
	provider := infrastructureProvider().Provider
	sound := []string{
		"infrastructure-components.yaml",
		"metadata.yaml",
		"cluster-template-dev.yaml",
		"clusterclass-quick.yaml",
		"README.md",
	}
	NewWithT(t).Expect(lint.Names(provider, sound)).To(BeEmpty())

	for name, message := range map[string]string{
		"components.yaml":    "infrastructure-components.yaml",
		"cluster-class.yaml": "is ignored because of its name",
	} {
		found := lint.Names(provider, []string{name})
		NewWithT(t).Expect(found).To(HaveLen(1))
		NewWithT(t).Expect(found[0].File).To(Equal(name))
		NewWithT(t).Expect(found[0].Message).To(ContainSubstring(message))
	}
}

func TestFindingsAreSorted(t *testing.T) {
	g := NewWithT(t)
	b := controlPlaneProvider()
	b.Metadata = nil
	replace(
		"cluster.x-k8s.io/provider", "other",
		"example-manager", "example-${X}",
		"v1alpha1_v1beta1", "v1_v2_v3",
		"type: integer", "type: string",
	)(t, b)

	first := lint.Bundle(b, nil)
	g.Expect(len(first)).To(BeNumerically(">", 3))

	for range 20 {
		g.Expect(lint.Bundle(b, nil)).To(Equal(first))
	}

	g.Expect(slices.IsSortedFunc(first, func(a, b contract.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object))
	})).To(BeTrue())
}

// TestPages: a finding refers to the page about the kind of its object.
func TestPages(t *testing.T) {
	g := NewWithT(t)
	b := infrastructureProvider()
	replace("plural: examplemachines}\n  scope: Namespaced", "plural: examplemachines}\n  scope: Cluster",
		"plural: exampleconfigs}\n  scope: Namespaced", "plural: exampleconfigs}\n  scope: Cluster")(t, b)

	const pages = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/"

	found := findingsOf("crd/scope", lint.Bundle(b, nil))
	g.Expect(found).To(HaveExactElements(
		HaveField("Contract", pages+"bootstrap-config#all-resources-scope"),
		HaveField("Contract", pages+"infra-machine#all-resources-scope"),
	))
}

// TestRules: the texts of every rule are complete sentences.
func TestRules(t *testing.T) {
	names := map[string]bool{}

	for _, rule := range lint.Rules() {
		g := NewWithT(t)
		g.Expect(names).NotTo(HaveKey(rule.Name))
		names[rule.Name] = true
		g.Expect(rule.Name).To(MatchRegexp(`^[a-z-]+/[a-z-]+$`))
		g.Expect(rule.Level).To(BeElementOf(contract.Error, contract.Warning, contract.Info))
		g.Expect(rule.Contract).To(HavePrefix("https://"))

		for _, sentence := range []string{rule.Requirement, rule.Why, rule.Remedy} {
			g.Expect(sentence).To(MatchRegexp(`^[A-Z\x60a-z].*\.( .*\.)*$`), rule.Name)
		}
	}
}
