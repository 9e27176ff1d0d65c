package ui

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

func comparison() view.Comparison {
	return view.Comparison{
		From: "v1.0.0", To: "v1.1.0",
		Changes: []objectdiff.Change{
			{
				Object: "Deployment aws-system/aws", Kind: objectdiff.Changed,
				Diff: "@@ -7 +7 @@\n spec:\n-  replicas: 0\n+  replicas: 1\n",
			},
			{Object: "Service aws-system/aws", Kind: objectdiff.Deleted, Diff: "@@ -1 +0,0 @@\n-kind: Service\n"},
		},
		Withheld: "The contents are not shown.",
	}
}

func TestCompare(t *testing.T) {
	g := NewWithT(t)
	out, document := parsed(t, newCompare(frame(), detailed(), view.Sides{From: 1, To: 2}, history(), comparison()))

	main := texts(document, "main")[0]
	for _, want := range []string{
		"Providers / infrastructure-aws / Compare", "capstan diff --baseline 1 --revision 2 infrastructure-aws -n aws-system",
		"0 to create, 1 to change, 1 to delete", "The contents are not shown.",
		"Deployment aws-system/aws changed @@ -7 +7 @@ spec: - replicas: 0 + replicas: 1",
		"Service aws-system/aws deleted",
	} {
		g.Expect(main).To(ContainSubstring(want))
	}

	g.Expect(texts(document, "select")).To(HaveExactElements(
		"the newest revision revision 3 v1.0.0 revision 2 v1.1.0 revision 1 v1.0.0",
		"the newest revision revision 3 v1.0.0 revision 2 v1.1.0 revision 1 v1.0.0"))
	g.Expect(out).To(ContainSubstring(`<option value="1" selected>revision 1 v1.0.0</option>`))
	g.Expect(out).To(ContainSubstring(`<del>-  replicas: 0</del>`))
	g.Expect(out).To(ContainSubstring(`<ins>&#43;  replicas: 1</ins>`))

	_, document = parsed(t, newCompare(frame(), detailed(), view.Sides{}, history(), view.Comparison{}))
	g.Expect(texts(document, "main")[0]).To(And(
		ContainSubstring("There are no differences."),
		ContainSubstring("capstan diff infrastructure-aws -n aws-system"),
	))

	out, _ = parsed(t, newProvider(frame(), detailed(), history(), ""))
	g.Expect(out).To(ContainSubstring(`/InfrastructureProvider/aws-system/aws/compare?from=2&amp;to=3"`))
	g.Expect(strings.Count(out, ">Compare</a>")).To(Equal(2), "the first has none before")
}

// TestCompareIsBounded checks that a large comparison is cut, and names the command that prints all of it.
func TestCompareIsBounded(t *testing.T) {
	g := NewWithT(t)
	change := objectdiff.Change{
		Object: "ConfigMap x", Kind: objectdiff.Created, Diff: strings.Repeat("+"+strings.Repeat("x", 1<<20)+"\n", 20),
	}
	c := view.Comparison{}

	for range 1000 {
		c.Changes = append(c.Changes, change)
	}

	out, document := parsed(t, newCompare(frame(), detailed(), view.Sides{From: 1}, history(), c))
	g.Expect(len(out)).To(BeNumerically("<", 2<<20))
	g.Expect(texts(document, "h2")).To(HaveLen(200))
	g.Expect(texts(document, "main")[0]).To(ContainSubstring(
		"Only 1000 of 20000 lines are shown. To see all of them, run: capstan diff --baseline 1 infrastructure-aws"))
	g.Expect(texts(document, "main")[0]).To(ContainSubstring("1000 to create"))
}
