package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestHistoryIsDrawn(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	var views []revisionView
	for _, r := range []struct {
		revision state.Revision
		record   release.Record
	}{
		{state.Revision{Number: 1, Origin: 1, Status: state.StatusSuperseded, Healthy: true, Created: now.Add(-48 * time.Hour), ChartDigest: digest}, release.Record{AppVersion: "v1.0.0", Description: "Install complete"}},
		{state.Revision{Number: 2, Origin: 2, Status: state.StatusFailed, Failure: state.FailureRejected, Created: now.Add(-time.Hour), ChartDigest: digest}, release.Record{AppVersion: "v1.1.0", Description: "Upgrade failed"}},
		{state.Revision{Number: 3, Origin: 1, Status: state.StatusDeployed, Created: now.Add(-time.Minute)}, release.Record{AppVersion: "v1.0.0", Description: "Rollback to 1"}},
	} {
		views = append(views, viewRevision(r.revision, &r.record))
	}

	draw := func(s *screen) {
		o := &historyOptions{screen: s, now: func() time.Time { return now }}
		NewWithT(t).Expect(o.print(views)).To(Succeed())
	}
	golden(t, "history.txt", drawn(&screen{}, draw))
	golden(t, "history-colored.txt", drawn(&screen{colored: true}, draw))
	golden(t, "history.json", drawn(&screen{format: "json"}, draw))
}
