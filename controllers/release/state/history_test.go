package state

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestSelect: what is acted on stays in a history that is longer than its limit.
func TestSelect(t *testing.T) {
	const limit = 5

	known := "v1:x"
	healthy := func(r *Revision) { r.Healthy = true }
	failed := func(r *Revision) { r.Status = v1alpha2.RevisionFailed }
	planted := func(r *Revision) { r.Digest, r.Healthy = "", true }

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
			9, map[int]change{1: healthy, 2: func(r *Revision) { r.Healthy, r.Status = true, v1alpha2.RevisionFailed }},
			[]int{9, 8, 7, 2, 1},
		},
		"revisions that are not complete": {
			9, map[int]change{
				1: failed, 3: func(r *Revision) { r.Status = v1alpha2.RevisionPendingUpgrade },
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
				8: func(r *Revision) { planted(r); r.Status = v1alpha2.RevisionFailed }, 9: planted,
			},
			[]int{9, 8, 3, 2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := History{}

			for number := c.length; number > 0; number-- {
				r := Revision{
					ReleaseRevision: v1alpha2.ReleaseRevision{Number: number, Status: v1alpha2.RevisionSuperseded, Digest: known},
				}
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
	known := v1alpha2.ReleaseRevision{
		Number: 2, Status: v1alpha2.RevisionDeployed, Digest: "v1:two", ContentDigest: "v1-x", Healthy: true, Wave: new(3),
	}

	t.Run("all of it", func(t *testing.T) {
		g := NewWithT(t)
		revision := Revision{Origin: 2, UID: "secret", ResourceVersion: "7"}
		revision.Status, revision.LastTransitionTime.Time = v1alpha2.RevisionFailed, noon

		want := revision
		want.ReleaseRevision, want.LastTransitionTime.Time = known, noon

		revision.Recall(known)
		g.Expect(revision).To(Equal(want))
	})

	t.Run("times", func(t *testing.T) {
		g := NewWithT(t)
		created, changed := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Minute))
		claimed := metav1.NewTime(noon.Add(time.Hour))
		stored := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
			Status: v1alpha2.RevisionDeployed, Time: claimed, LastTransitionTime: claimed,
		}}

		revision := stored
		revision.Recall(v1alpha2.ReleaseRevision{
			Status: v1alpha2.RevisionDeployed, Time: created, LastTransitionTime: changed,
		})
		g.Expect(revision).To(And(HaveField("Time", created), HaveField("LastTransitionTime", changed)))

		// How an action ended is not known until the status has it.
		revision = stored
		revision.Recall(v1alpha2.ReleaseRevision{Status: v1alpha2.RevisionPendingUpgrade, LastTransitionTime: changed})
		g.Expect(revision).To(And(HaveField("Time", claimed), HaveField("LastTransitionTime", claimed)))
	})

	const (
		deployed, superseded      = v1alpha2.RevisionDeployed, v1alpha2.RevisionSuperseded
		failed                    = v1alpha2.RevisionFailed
		installing, upgrading     = v1alpha2.RevisionPendingInstall, v1alpha2.RevisionPendingUpgrade
		uninstalling, uninstalled = v1alpha2.RevisionUninstalling, v1alpha2.RevisionUninstalled
	)

	for name, c := range map[string]struct {
		known, claimed, want v1alpha2.RevisionStatus
		failure              v1alpha2.RevisionFailure
	}{
		"deployed":                        {deployed, deployed, deployed, ""},
		"superseded by the next one":      {deployed, superseded, superseded, ""},
		"failed, forged":                  {deployed, failed, deployed, ""},
		"an older one, forged":            {superseded, failed, superseded, ""},
		"being created, forged":           {deployed, upgrading, deployed, ""},
		"uninstalled by helm":             {deployed, uninstalled, uninstalled, ""},
		"being uninstalled by helm":       {failed, uninstalling, uninstalling, v1alpha2.FailureRejected},
		"failed, before it was written":   {failed, installing, failed, v1alpha2.FailureRejected},
		"failed later":                    {failed, deployed, failed, v1alpha2.FailureRejected},
		"failed, superseded by helm":      {failed, superseded, failed, v1alpha2.FailureRejected},
		"announced, being created":        {"", upgrading, upgrading, ""},
		"announced, created":              {"", deployed, deployed, ""},
		"announced, interrupted":          {"", failed, failed, v1alpha2.FailureInterrupted},
		"seen being created, interrupted": {upgrading, failed, failed, v1alpha2.FailureInterrupted},
		"seen being created, created":     {upgrading, deployed, deployed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			failure := v1alpha2.RevisionFailure("")
			if c.known == v1alpha2.RevisionFailed {
				failure = v1alpha2.FailureRejected
			}

			revision := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Status: c.claimed}}
			revision.Recall(v1alpha2.ReleaseRevision{Status: c.known, Failure: failure})
			g.Expect(revision.Status).To(Equal(c.want))
			g.Expect(revision.Failure).To(Equal(c.failure))
		})
	}
}

// TestNear: records that are far ahead of the last one that is known are ignored.
func TestNear(t *testing.T) {
	g := NewWithT(t)
	near := func(last int) []Revision {
		var history History

		for _, number := range []int{1006, 1005, 1} {
			history.Revisions = append(history.Revisions, Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: number},
			})
		}

		return history.Near(last).Revisions
	}

	g.Expect(near(5)).To(HaveExactElements(HaveField("Number", 1005), HaveField("Number", 1)))
	g.Expect(near(6)).To(HaveLen(3))
	g.Expect(near(0)).To(HaveLen(3), "none is known")
}

func TestConfirms(t *testing.T) {
	for name, c := range map[string]struct {
		digest     string
		known, has bool
	}{
		"no digest in the status":      {"", false, false},
		"its digest in the status":     {"v1:x", true, true},
		"another digest in the status": {"v1:old", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revision := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 3, Digest: c.digest}}

			g.Expect(revision.Confirmed()).To(Equal(c.known))
			g.Expect(revision.Confirms("v1:x")).To(Equal(c.has))
			g.Expect(revision.Confirms("")).To(BeFalse(), "a record without a digest")
			g.Expect(Revision{}.Confirms("")).To(BeFalse())
		})
	}
}

// TestOr: what is known of a revision does not apply to a record that was written since.
func TestOr(t *testing.T) {
	g := NewWithT(t)
	read := func(number int, version string) Revision {
		return Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: number}, ResourceVersion: version}
	}

	known := read(2, "7")
	known.Healthy = true

	g.Expect(known.Or(read(2, "7")).Healthy).To(BeTrue())
	g.Expect(known.Or(read(2, "8")).Healthy).To(BeFalse())
	g.Expect(known.Or(read(1, "7")).Healthy).To(BeFalse())
}
