package provider

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestInstalledChart checks that no chart is looked for whose CRDs are not known to be what is installed.
func TestInstalledChart(t *testing.T) {
	for name, change := range map[string]func(*run){
		"nothing is installed":          func(r *run) { r.installed.Record = nil },
		"a revision that has failed":    func(r *run) { r.installed.Newest.Status = v1alpha2.RevisionFailed },
		"a revision of another program": func(r *run) { r.installed.Newest.ChartDigest = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.installed.Newest.ChartDigest = "digest"
			change(r)

			NewWithT(t).Expect(r.installedChart(t.Context())).To(BeNil())
		})
	}
}
