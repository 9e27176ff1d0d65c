package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
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
			}{}
			g.Expect(yaml.UnmarshalStrict(content, &recorded)).To(Succeed())

			before, err := yaml.Marshal(recorded.Input)
			g.Expect(err).NotTo(HaveOccurred())

			report := Of(recorded.Input, recorded.Ended)
			g.Expect(encode(t, report)).To(Equal(encode(t, recorded.Report)))
			g.Expect(yaml.Marshal(recorded.Input)).To(Equal(before), "the input stays as it is")

			suspended := recorded.Ended.Reason == v1alpha2.SuspendedReason
			g.Expect(check(situation{in: recorded.Input, suspended: suspended}, report)).To(BeEmpty())
		})
	}
}

// encode returns a report as people read it. Lists that are empty are the same as none.
func encode(t *testing.T, report Report) string {
	t.Helper()

	content, err := yaml.Marshal(report)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(content)
}
