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

// TestTextIsShort: a folder is named once, and few of many findings that say the same.
func TestTextIsShort(t *testing.T) {
	g := NewWithT(t)
	rule := contract.Rule[any]{Name: "a/a", Level: contract.Info, Requirement: "It is a."}
	at := func(file, name string) contract.Finding {
		return rule.Finding(contract.Place{File: file, Kind: "CRD", Object: name}, "is old")
	}

	g.Expect(contract.Text([]contract.Finding{
		at("/providers/aws/v1.0.0/a.yaml", "1"), at("/providers/docker/b.yaml", "2"), at("/providers/aws/v1.0.0/a.yaml", "3"),
		at("/providers/aws/v1.0.0/a.yaml", "4"), at("/providers/aws/v1.0.0/a.yaml", "5"),
	})).To(HavePrefix(`Files in /providers/

info a/a: It is a.
  aws/v1.0.0/a.yaml  CRD 1  is old
  docker/b.yaml      CRD 2  is old
  aws/v1.0.0/a.yaml  CRD 3  is old
  and 2 more of the same; --output json lists all
`))

	for _, files := range [][2]string{{"a/x.yaml", "b/x.yaml"}, {"a/x.yaml", ""}, {"oci://a/x.yaml", "oci://a/y.yaml"}} {
		g.Expect(contract.Text([]contract.Finding{at(files[0], "1"), at(files[1], "2")})).To(And(
			HavePrefix("info a/a"), ContainSubstring("a/x.yaml")), "no folder in common")
	}
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
