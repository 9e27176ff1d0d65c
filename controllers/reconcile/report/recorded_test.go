package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// TestRecordedReports checks reports that were recorded while an operator ran the scenarios: one for each set of
// conditions that occurred there.
func TestRecordedReports(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(len(paths)).To(BeNumerically(">", 40))

	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			g := NewWithT(t)
			recorded := readRecorded(t, path)
			in := recorded.Input
			before, err := yaml.Marshal(in)
			g.Expect(err).NotTo(HaveOccurred())

			report := Of(in, recorded.summary())
			g.Expect(encode(t, report)).To(Equal(encode(t, recorded.Report)))
			g.Expect(yaml.Marshal(in)).To(Equal(before), "the input stays as it is")

			g.Expect(check(recorded.situation(), report)).To(BeEmpty())
		})
	}
}

// recorded is a reconcile that was recorded.
type recorded struct {
	Input  Input  `json:"input"`
	Report Report `json:"report"`

	// Care and Change are how these ended. Ended is how a reconcile ended that had neither.
	Care      Result `json:"care"`
	Change    Result `json:"change"`
	Ended     Result `json:"ended"`
	Suspended bool   `json:"suspended"`
}

func readRecorded(t *testing.T, path string) recorded {
	t.Helper()

	g := NewWithT(t)
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())

	r := recorded{}
	g.Expect(yaml.UnmarshalStrict(content, &r)).To(Succeed())

	return r
}

func (r recorded) situation() situation {
	return situation{in: r.Input, care: r.Care, change: r.Change, suspended: r.Suspended}
}

// summary returns how the reconcile ended.
func (r recorded) summary() Summary {
	if r.Ended.Ends() {
		return Summary{Result: r.Ended}
	}

	return r.situation().ended()
}

// encode returns a report as people read it. Lists that are empty are the same as none.
func encode(t *testing.T, report Report) string {
	t.Helper()

	content, err := yaml.Marshal(report)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(content)
}
