package providers

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestPrintHistory(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	var (
		revisions []state.Revision
		records   []*release.Record
	)

	for _, r := range []struct {
		revision state.Revision
		record   release.Record
	}{
		{
			state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: 1, Status: v1alpha2.RevisionSuperseded, Healthy: true,
					Request: v1alpha2.RevisionRequest{Generation: 4}, Time: metav1.NewTime(now.Add(-48 * time.Hour)),
					ChartDigest: digest, ContentDigest: "v1-a",
				},
				Origin: 1,
			},
			release.Record{AppVersion: "v1.0.0", Description: "Install complete", Values: map[string]any{}},
		},
		{
			state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: 2, Version: "v1.1.0", Status: v1alpha2.RevisionFailed, Failure: v1alpha2.FailureRejected,
					Time: metav1.NewTime(now.Add(-time.Hour)), ChartDigest: digest,
				},
				Origin: 2,
			},
			release.Record{AppVersion: "v1.1.0", Description: "Upgrade failed", Values: map[string]any{
				"deployments": map[string]any{"manager": map[string]any{"replicas": 2}},
			}},
		},
		{
			state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: 3, Status: v1alpha2.RevisionDeployed, Time: metav1.NewTime(now.Add(-time.Minute)),
				},
				Origin: 1,
			},
			release.Record{AppVersion: "v1.0.0", Description: "Rollback to 1"},
		},
	} {
		revisions = slices.Insert(revisions, 0, r.revision)
		records = slices.Insert(records, 0, &r.record)
	}

	views := view.NewHistory(revisions, records)

	history := func(printer cli.Printer) string {
		return clitest.Printed(t, printer, func(p *cli.Printer) error { return printHistory(p, views, now) })
	}
	clitest.Golden(t, "history.txt", history(cli.Printer{}))
	clitest.Golden(t, "history-colored.txt", history(cli.Printer{Color: true}))
	clitest.Golden(t, "history.json", history(cli.Printer{Format: cli.FormatJSON}))
}
