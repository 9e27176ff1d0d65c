package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
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
			content, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())

			recorded := struct {
				Input  Input   `json:"input"`
				Ended  Summary `json:"ended"`
				Report Report  `json:"report"`

				// Confirmed are the numbers of the revisions that are confirmed.
				Confirmed []int `json:"confirmed"`
			}{}
			g.Expect(yaml.UnmarshalStrict(content, &recorded)).To(Succeed())

			in := recorded.Input
			confirm(&in.Installed.Revision, recorded.Confirmed)

			for i := range in.Installed.History.Revisions {
				confirm(&in.Installed.History.Revisions[i], recorded.Confirmed)
			}

			before, err := yaml.Marshal(in)
			g.Expect(err).NotTo(HaveOccurred())

			report := Of(in, recorded.Ended)
			g.Expect(encode(t, report)).To(Equal(encode(t, recorded.Report)))
			g.Expect(yaml.Marshal(in)).To(Equal(before), "the input stays as it is")

			suspended := recorded.Ended.Reason == v1alpha2.SuspendedReason
			g.Expect(check(situation{in: in, suspended: suspended}, report)).To(BeEmpty())
		})
	}
}

// confirm makes a revision a confirmed one if it has one of the numbers.
func confirm(revision *state.Revision, confirmed []int) {
	if slices.Contains(confirmed, revision.Number) {
		revision.Known = state.AnyRecord()
	}
}

// encode returns a report as people read it. Lists that are empty are the same as none.
func encode(t *testing.T, report Report) string {
	t.Helper()

	content, err := yaml.Marshal(report)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(content)
}
