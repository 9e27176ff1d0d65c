package providers

import (
	"testing"
	"time"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestPrintHistory(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	var views []view.Revision
	for _, r := range []struct {
		revision state.Revision
		record   release.Record
	}{
		{
			state.Revision{
				Number:      1,
				Origin:      1,
				Status:      state.StatusSuperseded,
				Healthy:     true,
				Request:     state.Request{Generation: 4},
				Created:     now.Add(-48 * time.Hour),
				ChartDigest: digest,
			},
			release.Record{AppVersion: "v1.0.0", Description: "Install complete"},
		},
		{
			state.Revision{
				Number:      2,
				Origin:      2,
				Status:      state.StatusFailed,
				Failure:     state.FailureRejected,
				Created:     now.Add(-time.Hour),
				ChartDigest: digest,
			},
			release.Record{AppVersion: "v1.1.0", Description: "Upgrade failed"},
		},
		{
			state.Revision{Number: 3, Origin: 1, Status: state.StatusDeployed, Created: now.Add(-time.Minute)},
			release.Record{AppVersion: "v1.0.0", Description: "Rollback to 1"},
		},
	} {
		views = append(views, view.NewRevision(r.revision, &r.record))
	}

	history := func(printer cli.Printer) string {
		return clitest.Printed(t, printer, func(p *cli.Printer) error { return printHistory(p, views, now) })
	}
	clitest.Golden(t, "history.txt", history(cli.Printer{}))
	clitest.Golden(t, "history-colored.txt", history(cli.Printer{Color: true}))
	clitest.Golden(t, "history.json", history(cli.Printer{Format: cli.FormatJSON}))
}
