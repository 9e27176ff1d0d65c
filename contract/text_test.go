package contract_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/contract"
)

// TestText: the worst rules come first, each with its findings, in files and in clusters, and with the sections that
// they refer to.
func TestText(t *testing.T) {
	g := NewWithT(t)
	rules := []contract.Rule[any]{
		{Name: "a/a", Level: contract.Warning, Contract: "https://example.com/a", Requirement: "It is a.",
			Why: "It is b.", Remedy: "Use a."},
		{Name: "b/b", Level: contract.Error, Contract: "https://example.com/b", Requirement: "It works.",
			Why: "It fails.", Remedy: "Fix it."},
	}

	file := rules[0].Finding(contract.Place{File: "metadata.yaml"}, "is empty")
	inFile := rules[1].Finding(contract.Place{
		File: "x.yaml", Kind: "Secret", Object: "one", Contract: "https://example.com/a#one",
	}, "is missing")
	inCluster := rules[1].Finding(contract.Place{Kind: "Machine", Object: "default/one"}, "is wrong")

	g.Expect(contract.Text([]contract.Finding{file, inFile, inCluster})).To(Equal(`error b/b: It works.
  x.yaml               Secret one  is missing
  Machine default/one  is wrong
  Why:     It fails.
  Remedy:  Fix it.
  See:     https://example.com/a#one
           https://example.com/b

warning a/a: It is a.
  metadata.yaml  is empty
  Why:     It is b.
  Remedy:  Use a.
  See:     https://example.com/a

2 errors, 1 warning
`))
	g.Expect(contract.Text(nil)).To(Equal("no findings\n"))
}

func TestFail(t *testing.T) {
	g := NewWithT(t)
	info, warning := contract.Finding{Level: contract.Info}, contract.Finding{Level: contract.Warning}

	g.Expect(contract.Fail([]contract.Finding{info, warning}, contract.Error)).To(BeFalse())
	g.Expect(contract.Fail([]contract.Finding{info, warning}, contract.Warning)).To(BeTrue())
	g.Expect(contract.Fail([]contract.Finding{info}, contract.Warning)).To(BeFalse())
}

func TestMarkdownTable(t *testing.T) {
	rule := contract.Rule[any]{
		Name: "a/b", Level: contract.Error, Contract: "https://example.com", Requirement: "It is <a> | <b>.",
	}
	NewWithT(t).Expect(contract.MarkdownTable([]contract.Rule[any]{rule})).To(Equal("| Rule | Level | Requirement |\n" +
		"| --- | --- | --- |\n| [a/b](https://example.com) | error | It is &lt;a> \\| &lt;b>. |\n"))
}
