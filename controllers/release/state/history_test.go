package state

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestSelect: what is acted on stays in a history that is longer than its limit.
func TestSelect(t *testing.T) {
	const limit = 5

	known := "v1:x"
	healthy := func(r *Revision) { r.Healthy = true }
	failed := func(r *Revision) { r.Status = StatusFailed }
	planted := func(r *Revision) { r.RecordDigest, r.Healthy = "", true }

	for name, c := range map[string]struct {
		length int
		change map[int]change
		want   []int
	}{
		"a short history":             {4, nil, []int{4, 3, 2, 1}},
		"the newest revisions":        {9, nil, []int{9, 8, 7, 6, 5}},
		"the newest healthy revision": {9, map[int]change{1: healthy, 2: healthy}, []int{9, 8, 7, 6, 2}},
		"one that is paused, and one that is not": {
			9, map[int]change{1: healthy, 2: func(r *Revision) { r.Healthy, r.Paused = true, true }}, []int{9, 8, 7, 2, 1},
		},
		"no healthy revision that failed later": {
			9, map[int]change{1: healthy, 2: func(r *Revision) { r.Healthy, r.Status = true, StatusFailed }},
			[]int{9, 8, 7, 2, 1},
		},
		"revisions that are not complete": {
			9, map[int]change{
				1: failed, 3: func(r *Revision) { r.Status = StatusPendingUpgrade },
			},
			[]int{9, 8, 7, 3, 1},
		},
		"a healthy one, among too many that are not complete": {
			9, map[int]change{
				1: healthy, 2: failed, 3: failed, 4: failed, 5: failed, 6: failed, 7: failed, 8: failed, 9: failed,
			},
			[]int{9, 8, 7, 6, 1},
		},
		"no planted records": {
			9, map[int]change{
				1: healthy, 4: planted, 5: planted, 6: planted, 7: planted,
				8: func(r *Revision) { planted(r); r.Status = StatusFailed }, 9: planted,
			},
			[]int{9, 8, 3, 2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := History{}

			for number := c.length; number > 0; number-- {
				r := Revision{Number: number, Status: StatusSuperseded, RecordDigest: known}
				if change := c.change[number]; change != nil {
					change(&r)
				}

				h.Revisions = append(h.Revisions, r)
			}

			var numbers []int
			for _, r := range h.Select(limit) {
				numbers = append(numbers, r.Number)
			}

			g.Expect(numbers).To(Equal(c.want))
		})
	}
}

// TestRecall: what is known of a revision counts, whatever its record says. Helm may uninstall and supersede it.
func TestRecall(t *testing.T) {
	asked := Request{UID: "uid", Generation: 2}
	known := Revision{
		Number: 2, Status: StatusDeployed, Digest: "v1-x", Version: "v1.0.0", Healthy: true, Staged: true, Wave: 3,
		FinishedJobs: []string{"x"}, Request: asked, RecordDigest: "v1:two",
	}
	stored := Revision{Number: 2, Origin: 2, Status: StatusFailed, UID: "secret", ResourceVersion: "7", Changed: noon}

	t.Run("all of it", func(t *testing.T) {
		want := known
		want.Origin, want.UID, want.ResourceVersion, want.Changed = 2, "secret", "7", noon

		stored.Recall(known)
		NewWithT(t).Expect(stored).To(Equal(want))
	})

	t.Run("times", func(t *testing.T) {
		g := NewWithT(t)
		created, changed, claimed := noon, noon.Add(time.Minute), noon.Add(time.Hour)
		known := Revision{Status: StatusDeployed, Created: created, Changed: changed}

		revision := Revision{Status: StatusDeployed, Created: claimed, Changed: claimed}
		revision.Recall(known)
		g.Expect(revision).To(And(HaveField("Created", created), HaveField("Changed", changed)))

		// How an action ended is not known until the status has it.
		revision = Revision{Status: StatusDeployed, Created: claimed, Changed: claimed}
		revision.Recall(Revision{Status: StatusPendingUpgrade, Changed: changed})
		g.Expect(revision).To(And(HaveField("Created", claimed), HaveField("Changed", claimed)))
	})

	for name, c := range map[string]struct {
		known, claimed, want Status
		failure              Failure
	}{
		"deployed":                        {StatusDeployed, StatusDeployed, StatusDeployed, ""},
		"superseded by the next one":      {StatusDeployed, StatusSuperseded, StatusSuperseded, ""},
		"failed, forged":                  {StatusDeployed, StatusFailed, StatusDeployed, ""},
		"an older one, forged":            {StatusSuperseded, StatusFailed, StatusSuperseded, ""},
		"being created, forged":           {StatusDeployed, StatusPendingUpgrade, StatusDeployed, ""},
		"uninstalled by helm":             {StatusDeployed, StatusUninstalled, StatusUninstalled, ""},
		"being uninstalled by helm":       {StatusFailed, StatusUninstalling, StatusUninstalling, FailureRejected},
		"failed, before it was written":   {StatusFailed, StatusPendingInstall, StatusFailed, FailureRejected},
		"failed later":                    {StatusFailed, StatusDeployed, StatusFailed, FailureRejected},
		"failed, superseded by helm":      {StatusFailed, StatusSuperseded, StatusFailed, FailureRejected},
		"announced, being created":        {"", StatusPendingUpgrade, StatusPendingUpgrade, ""},
		"announced, created":              {"", StatusDeployed, StatusDeployed, ""},
		"announced, interrupted":          {"", StatusFailed, StatusFailed, FailureInterrupted},
		"seen being created, interrupted": {StatusPendingUpgrade, StatusFailed, StatusFailed, FailureInterrupted},
		"seen being created, created":     {StatusPendingUpgrade, StatusDeployed, StatusDeployed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			failure := Failure("")
			if c.known == StatusFailed {
				failure = FailureRejected
			}

			revision := Revision{Status: c.claimed}
			revision.Recall(Revision{Status: c.known, Failure: failure})
			g.Expect(revision.Status).To(Equal(c.want))
			g.Expect(revision.Failure).To(Equal(c.failure))
		})
	}
}

// TestNear: records that are far ahead of the last one that is known are ignored.
func TestNear(t *testing.T) {
	g := NewWithT(t)
	near := func(last int) []Revision {
		return History{Revisions: []Revision{{Number: 1006}, {Number: 1005}, {Number: 1}}}.Near(last).Revisions
	}

	g.Expect(near(5)).To(HaveExactElements(HaveField("Number", 1005), HaveField("Number", 1)))
	g.Expect(near(6)).To(HaveLen(3))
	g.Expect(near(0)).To(HaveLen(3), "none is known")
}

// TestConfirmedOf: what is known of a revision does not apply to a record that was written since.
func TestConfirmedOf(t *testing.T) {
	g := NewWithT(t)
	known := Revision{Number: 2, ResourceVersion: "7", Healthy: true}.Confirm()

	g.Expect(known.Of(Revision{Number: 2, ResourceVersion: "7"}).Healthy).To(BeTrue())
	g.Expect(known.Of(Revision{Number: 2, ResourceVersion: "8"}).Healthy).To(BeFalse())
	g.Expect(known.Of(Revision{Number: 1, ResourceVersion: "7"}).Healthy).To(BeFalse())
}
