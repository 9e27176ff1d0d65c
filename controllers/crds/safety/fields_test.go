package safety_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// TestFieldChanges checks each change without objects, with one that it breaks and with one that it
// does not break.
func TestFieldChanges(t *testing.T) {
	for _, c := range changes {
		live, desired := definition([]change{c}, false), definition([]change{c}, true)
		check := func(g Gomega, in safety.Objects) *safety.Report {
			report, err := safety.Check(
				t.Context(),
				safety.Input{Changes: []safety.Change{{Live: live, Desired: desired}}, Objects: in},
			)
			g.Expect(err).NotTo(HaveOccurred())

			return report
		}
		expect := func(g Gomega, report *safety.Report, level safety.Level, affected int) {
			if c.rule == "" {
				g.Expect(report.Findings).To(BeEmpty())
				return
			}

			g.Expect(report.Findings).To(HaveLen(1), "%s", report)
			f := report.Findings[0]
			g.Expect([]any{f.Rule, f.Path, f.Level, f.Affected}).
				To(Equal([]any{c.rule, c.field(), level, affected}), "%s", report)
		}

		t.Run(c.name+"/by rule", func(t *testing.T) {
			g := NewWithT(t)
			expect(g, check(g, nil), c.level, 0)
		})
		t.Run(c.name+"/no objects", func(t *testing.T) {
			g := NewWithT(t)
			expect(g, check(g, objects{}), safety.Warning, 0)
		})

		if c.fine != "" {
			t.Run(c.name+"/fine objects", func(t *testing.T) {
				g := NewWithT(t)
				expect(g, check(g, objects{sample("fine", c.name, c.fine)}), safety.Warning, 0)
			})
		}

		if c.broken != "" {
			t.Run(c.name+"/broken objects", func(t *testing.T) {
				g := NewWithT(t)
				report := check(g, objects{empty("a"), sample("b", c.name, c.broken)})
				expect(g, report, safety.Error, 1)
				example := report.Findings[0].Examples[0]
				g.Expect(example.String()).To(Equal("default/b"))
				g.Expect(example.Fields).To(ContainElement("spec." + c.name + c.at))
				g.Expect(report.HasErrors()).To(BeTrue())
			})
		}
	}
}
