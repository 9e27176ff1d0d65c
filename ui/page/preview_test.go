package page_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

func TestPreview(t *testing.T) {
	g := NewWithT(t)
	main := func(set func(*page.Preview)) string {
		p := page.NewPreview(frame(), detailed(), "v1.2.0")
		set(p)

		_, document := render(t, p)

		return texts(document, "main")[0]
	}

	g.Expect(main(func(*page.Preview) {})).To(And(
		ContainSubstring("capstan diff --version v1.2.0 infrastructure-aws -n aws-system"),
		ContainSubstring("is being computed")))

	upgrade := comparison()
	upgrade.CRDs = []facts.CRDChange{
		{Name: "new.example.com", Created: true}, {Name: "old.example.com", Fields: []string{"/spec/scope"}},
	}
	upgrade.Findings = []facts.CRDFinding{
		{Level: "Error", CRD: "old.example.com", Text: "old.example.com: the scope changes"},
	}
	upgrade.Warnings = []string{"spec.manager has no effect"}

	shown := main(func(p *page.Preview) { p.SetChanges(page.NewChanges(upgrade), now.Add(-time.Minute), nil) })
	for _, want := range []string{
		"Providers / infrastructure-aws / Upgrade to v1.2.0", "0 to create, 1 to change, 1 to delete",
		"CRDs: 2 to create or change",
		"60s ago", "Error old.example.com: the scope changes", "new.example.com would be created",
		"old.example.com would be changed Fields /spec/scope", "spec.manager has no effect",
		"Deployment aws-system/aws would be changed @@ -7 +7 @@ spec: - replicas: 0 + replicas: 1",
	} {
		g.Expect(shown).To(ContainSubstring(want))
	}

	g.Expect(main(func(p *page.Preview) { p.SetChanges(page.Changes{}, now, nil) })).To(
		ContainSubstring("Nothing would change."))
	g.Expect(main(func(p *page.Preview) { p.SetChanges(page.Changes{}, now, errors.New("no such host")) })).To(
		ContainSubstring("What the upgrade would change cannot be computed: no such host"))
}

// TestPreviewIsBounded checks that a page has a limited size, whatever a provider changes.
func TestPreviewIsBounded(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 1<<16)
	c := facts.Comparison{}

	for range 1000 {
		c.CRDs = append(c.CRDs, facts.CRDChange{Name: long, Fields: []string{long}})
		c.Findings = append(c.Findings, facts.CRDFinding{Level: "Error", Text: long})
		c.Warnings = append(c.Warnings, long)
	}

	c.CRDs[0].Fields = make([]string, 1000)

	p := page.NewPreview(frame(), detailed(), "v1.2.0")
	p.SetChanges(page.NewChanges(c), now, nil)

	out, document := render(t, p)
	g.Expect(len(out)).To(BeNumerically("<", 2<<20))
	g.Expect(texts(document, "main")[0]).To(ContainSubstring("and 980 more"))
}
