package trial_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// TestFieldChanges tries each change without objects, with one that it breaks and with one that it
// does not break.
func TestFieldChanges(t *testing.T) {
	for _, c := range changes {
		change := trial.Change{Live: definition([]change{c}, false), Desired: definition([]change{c}, true)}

		t.Run(c.name+"/no objects", func(t *testing.T) {
			NewWithT(t).Expect(run(t, change, objects{}).Findings).To(BeEmpty())
		})

		if c.fine != "" {
			t.Run(c.name+"/fine objects", func(t *testing.T) {
				NewWithT(t).Expect(run(t, change, objects{sample("fine", c.name, c.fine)}).Findings).To(BeEmpty())
			})
		}

		if c.broken != "" {
			t.Run(c.name+"/broken objects", func(t *testing.T) {
				g := NewWithT(t)
				report := run(t, change, objects{empty("a"), sample("b", c.name, c.broken)})
				g.Expect(report.Refused()).To(BeTrue())
				g.Expect(report.Findings).To(HaveLen(1), report.Message())

				f := report.Findings[0]
				g.Expect([]any{f.Path, f.Affected}).To(Equal([]any{c.field(), 1}), report.Message())
				g.Expect(f.Message == "the field is dropped").To(Equal(c.drops), report.Message())
				g.Expect(f.Examples).To(Equal([]string{"default/b"}))
			})
		}
	}
}
