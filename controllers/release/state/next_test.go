package state

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// change makes something else of a revision that Capstan created.
type change func(*Revision)

func revision(status v1alpha2.RevisionStatus, digest string, changes ...change) Revision {
	r := Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Status: status, ContentDigest: digest, Digest: "v1:known"},
	}
	for _, c := range changes {
		c(&r)
	}

	return r
}

func healthy(r *Revision)    { r.Healthy = true }
func unreadable(r *Revision) { r.Unreadable = true }
func paused(r *Revision)     { r.Paused = true }
func staged(r *Revision)     { r.Wave = new(0) }
func forged(r *Revision)     { r.Digest = "" }

// byOthers is a revision that another program created from scratch; history turns -1 into Origin 0.
func byOthers(r *Revision) { r.Origin, r.ContentDigest = -1, "" }

func failure(f v1alpha2.RevisionFailure) change { return func(r *Revision) { r.Failure = f } }
func request(generation int64) change {
	return func(r *Revision) { r.Request = v1alpha2.RevisionRequest{UID: "uid", Generation: generation} }
}
func rollbackTo(n int) change { return func(r *Revision) { r.RollbackTo = n } }

func ago(d time.Duration) change {
	return func(r *Revision) { r.Time.Time, r.LastTransitionTime.Time = noon.Add(-d), noon.Add(-d) }
}

// history returns the history of revisions given oldest first. It numbers them; those without a
// time were created at noon.
func history(revisions ...Revision) History {
	revisions = slices.Clone(revisions)

	for i := range revisions {
		r := &revisions[i]

		r.Number = i + 1
		if r.Origin == 0 {
			r.Origin = r.Number
		}

		r.Origin = max(r.Origin, 0)

		if r.Time.IsZero() {
			r.Time.Time, r.LastTransitionTime.Time = noon, noon
		}
	}

	slices.Reverse(revisions)

	return History{Release: core, Revisions: revisions}
}

// policy has one retry left to try and everything switched on, one second after noon.
func policy(changes ...func(*Policy)) Policy {
	p := Policy{
		Retries:  1,
		Timeout:  5 * time.Minute,
		Rollback: true,
		Existed:  true,
		Now:      noon.Add(time.Second),
	}
	for _, c := range changes {
		c(&p)
	}

	return p
}

func reverting(p *Policy)   { p.Revert = true }
func specChanged(p *Policy) { p.SpecChanged = true }
func requested(p *Policy)   { p.Requested = true }
func notExisted(p *Policy)  { p.Existed = false }
func noRetries(p *Policy)   { p.Retries = 0 }
func noRollback(p *Policy)  { p.Rollback = false }
func pausing(p *Policy)     { p.Paused = true }
func later(p *Policy)       { p.Now = noon.Add(time.Minute) }
func muchLater(p *Policy)   { p.Now = noon.Add(time.Hour) }

func refused(numbers ...int) func(*Policy) {
	return func(p *Policy) {
		p.Refused = map[int]bool{}
		for _, number := range numbers {
			p.Refused[number] = true
		}
	}
}

var (
	worked      = revision(v1alpha2.RevisionSuperseded, "old", healthy)
	deployed    = revision(v1alpha2.RevisionDeployed, "wanted")
	rejected    = revision(v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureRejected))
	unhealthy   = revision(v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureUnhealthy))
	unavailable = revision(v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureUnavailable))
	interrupted = revision(v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureInterrupted))
	uninstalled = revision(v1alpha2.RevisionUninstalled, "wanted")
	planted     = revision(v1alpha2.RevisionDeployed, "wanted", healthy, forged)
	plantedOld  = revision(v1alpha2.RevisionSuperseded, "old", healthy, forged)

	requestedAgain = revision(v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureRejected), request(4))

	helms = revision(v1alpha2.RevisionDeployed, "", byOthers)

	workedPaused        = revision(v1alpha2.RevisionSuperseded, "paused", healthy, paused)
	wantedWorked        = revision(v1alpha2.RevisionSuperseded, "wanted", healthy)
	rolledBack          = revision(v1alpha2.RevisionDeployed, "old", rollbackTo(1))
	rollingBack         = revision(v1alpha2.RevisionDeployed, "old", rollbackTo(1), staged)
	rollbackFailed      = revision(v1alpha2.RevisionFailed, "old", rollbackTo(1))
	rollbackUnavailable = revision(v1alpha2.RevisionFailed, "old", rollbackTo(1), failure(v1alpha2.FailureUnavailable))
	rollbackInterrupted = revision(v1alpha2.RevisionPendingRollback, "old", rollbackTo(1))
	replacedByWanted    = revision(v1alpha2.RevisionSuperseded, "wanted")
	replaced            = revision(v1alpha2.RevisionSuperseded, "old")
	rejectedLongAgo     = revision(v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureRejected), ago(time.Hour))
	unavailableForLong  = revision(
		v1alpha2.RevisionFailed, "wanted", failure(v1alpha2.FailureUnavailable), ago(time.Hour))
	rolledBackAndHealthy = revision(v1alpha2.RevisionSuperseded, "old", rollbackTo(1), healthy)
)

func next(h History, p Policy) (Observed, Decision) {
	observed := Determine(h, "wanted", Rules{LockTimeout: time.Minute, Now: p.Now})
	return observed, Next(h, "wanted", observed, p)
}

func TestNext(t *testing.T) {
	for name, tt := range map[string]struct {
		history    History
		policy     Policy
		want       Action
		rollbackTo int
	}{
		"never installed":              {history(), policy(notExisted), Apply, 0},
		"uninstalled":                  {history(), policy(), Hold, 0},
		"uninstalled, reverting":       {history(), policy(reverting), Apply, 0},
		"uninstalled, spec changed":    {history(), policy(specChanged), Apply, 0},
		"uninstalled, requested":       {history(), policy(requested), Apply, 0},
		"uninstalled, history kept":    {history(uninstalled), policy(), Hold, 0},
		"... and requested":            {history(uninstalled), policy(requested), Apply, 0},
		"... and the operator changed": {history(revision(v1alpha2.RevisionUninstalled, "old")), policy(), Hold, 0},

		"in sync":      {history(deployed), policy(), None, 0},
		"out of sync":  {history(revision(v1alpha2.RevisionDeployed, "old")), policy(), Apply, 0},
		"corrupt":      {history(revision(v1alpha2.RevisionDeployed, "wanted", unreadable)), policy(), Apply, 0},
		"uninstalling": {history(revision(v1alpha2.RevisionUninstalling, "wanted")), policy(), Wait, 0},
		"desired again": {history(revision(v1alpha2.RevisionSuperseded, "wanted", healthy),
			revision(v1alpha2.RevisionFailed, "tried"), revision(v1alpha2.RevisionDeployed, "wanted", rollbackTo(1))),
			policy(), None, 0},

		"helm rollback":                       {history(replaced, replacedByWanted, helms), policy(), Hold, 0},
		"helm rollback, reverting":            {history(replacedByWanted, helms), policy(reverting), Apply, 0},
		"helm rollback, requested":            {history(replacedByWanted, helms), policy(requested), Apply, 0},
		"helm rollback, the operator changed": {history(replaced, helms), policy(), Hold, 0},
		"helm upgrades until only they are left": {
			history(helms, revision(v1alpha2.RevisionDeployed, "", byOthers, request(1))), policy(), Hold, 0,
		},
		"helm install": {history(helms), policy(), Apply, 0},

		"install rejected":                  {history(rejected), policy(), Wait, 0},
		"install rejected, later":           {history(rejected), policy(later), Apply, 0},
		"install rejected twice":            {history(rejected, rejected), policy(muchLater), Stop, 0},
		"install rejected twice, requested": {history(rejected, rejected), policy(muchLater, requested), Apply, 0},

		"upgrade rejected":                  {history(worked, rejected), policy(), Rollback, 1},
		"upgrade rejected, no rollback":     {history(worked, rejected), policy(noRollback), Wait, 0},
		"upgrade rejected, nothing healthy": {history(replaced, rejected), policy(), Wait, 0},
		"upgrade unhealthy":                 {history(worked, unhealthy), policy(), Rollback, 1},
		"upgrade interrupted":               {history(worked, interrupted), policy(), Apply, 0},
		"upgrade unavailable":               {history(worked, unavailable), policy(), Wait, 0},
		"upgrade unavailable, later":        {history(worked, unavailable), policy(later), Apply, 0},
		"upgrade unavailable for too long": {
			history(worked, unavailableForLong, unavailable), policy(later), Rollback, 1,
		},

		"upgrade unhealthy, paused before": {history(worked, workedPaused, unhealthy), policy(), Rollback, 1},
		"upgrade unhealthy, never ran":     {history(workedPaused, unhealthy), policy(), Wait, 0},
		"upgrade rejected, paused":         {history(worked, workedPaused, rejected), policy(pausing), Rollback, 2},
		"upgrade rejected, to be paused":   {history(worked, rejected), policy(pausing), Rollback, 1},
		"upgrade unhealthy, the newest target refused": {
			history(worked, worked, unhealthy), policy(refused(2)), Rollback, 1,
		},
		"upgrade unhealthy, all targets refused":        {history(worked, unhealthy), policy(refused(1)), Wait, 0},
		"upgrade unhealthy, all targets refused, later": {history(worked, unhealthy), policy(later, refused(1)), Apply, 0},
		"what worked last fails":                        {history(worked, wantedWorked, helms, unhealthy), policy(), Wait, 0},
		"what worked last fails, later":                 {history(worked, wantedWorked, unhealthy), policy(later), Apply, 0},
		"what worked before the last fails": {
			history(wantedWorked, worked, unhealthy), policy(), Rollback, 2,
		},
		"upgrade unavailable after a failure long ago": {
			history(worked, rejectedLongAgo, unavailable), policy(later), Apply, 0,
		},

		"rolled back":        {history(worked, rejected, rolledBack), policy(), Wait, 0},
		"rolled back, later": {history(worked, rejected, rolledBack), policy(later), Apply, 0},
		"rolled back twice": {
			history(worked, rejected, rolledBack, rejected, rolledBack), policy(muchLater), Stop, 0,
		},
		"rolled back twice, and requested again": {
			history(worked, rejected, rolledBack, rejected, rolledBack, requestedAgain), policy(), Rollback, 1,
		},
		"... and rolled back again": {
			history(worked, rejected, rolledBack, rejected, rolledBack, requestedAgain, rolledBack), policy(later), Apply, 0,
		},
		"rolled back, rejected again": {history(worked, rejected, rolledBack, rejected), policy(), Rollback, 1},
		"rolled back, healthy, rejected again": {
			history(worked, rejected, rolledBackAndHealthy, rejected), policy(), Rollback, 3,
		},
		"rolled back, something else desired": {
			history(worked, revision(v1alpha2.RevisionFailed, "tried", failure(v1alpha2.FailureRejected)), rolledBack),
			policy(), Apply, 0,
		},

		"rolled back in part, later": {history(worked, rejected, rollingBack), policy(later), Wait, 0},
		"rolled back in part, later, no retries": {
			history(worked, rejected, rollingBack), policy(later, noRetries), Wait, 0,
		},
		"rolled back in part, requested": {history(worked, rejected, rollingBack), policy(requested), Apply, 0},
		"rolled back in part, a wave not healthy in time": {
			history(worked, rejected, rollingBack), policy(muchLater), Apply, 0,
		},

		"rollback failed":        {history(worked, rejected, rollbackFailed), policy(), Wait, 0},
		"rollback failed, later": {history(worked, rejected, rollbackFailed), policy(later), Rollback, 1},
		"rollback failed twice": {
			history(worked, rejected, rollbackFailed, rollbackFailed), policy(muchLater), Rollback, 1,
		},
		"rollback failed five times, later": {
			history(slices.Concat([]Revision{worked, rejected}, slices.Repeat([]Revision{rollbackFailed}, 5))...),
			policy(later), Wait, 0,
		},
		"rollback failed, its target refused": {history(worked, rejected, rollbackFailed), policy(refused(1)), Wait, 0},
		"rollback failed, its target refused, later": {
			history(worked, rejected, rollbackFailed), policy(later, refused(1)), Apply, 0,
		},
		"rollback unavailable":        {history(worked, rejected, rollbackUnavailable), policy(), Wait, 0},
		"rollback unavailable, later": {history(worked, rejected, rollbackUnavailable), policy(later), Rollback, 1},
		"rollback unavailable, no retries": {
			history(worked, rejected, rollbackUnavailable), policy(later, noRetries), Rollback, 1,
		},
		"rollback interrupted": {history(worked, rejected, rollbackInterrupted), policy(), Rollback, 1},
		"rollback interrupted, its target refused": {
			history(worked, rejected, rollbackInterrupted), policy(refused(1)), Apply, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			observed, decision := next(tt.history, tt.policy)
			g.Expect(decision.Action).To(Equal(tt.want), "%s: %s", observed.State, observed.Message)
			g.Expect(decision.Revision.Number).To(Equal(tt.rollbackTo))
			g.Expect(decision.Until.IsZero()).To(Equal(tt.want != Wait))
		})
	}
}

func TestDecisionString(t *testing.T) {
	g := NewWithT(t)
	target := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 3}}
	g.Expect(Decision{Action: Rollback, Revision: target}.String()).To(Equal("Rollback to revision 3"))
	g.Expect(Decision{Action: Wait}.String()).To(Equal("Wait"))
}

func TestBackoff(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Backoff(MinBackoff, 1)).To(Equal(MinBackoff))
	g.Expect(Backoff(time.Second, 1)).To(Equal(time.Second))
	g.Expect(Backoff(time.Second, 3)).To(Equal(4 * time.Second))
	g.Expect(Backoff(MaxBackoff, 2)).To(Equal(MaxBackoff))

	last := time.Duration(0)

	for attempts := range 12 {
		wait := Backoff(MinBackoff, attempts+1)
		g.Expect(wait).To(Or(BeNumerically(">", last), Equal(MaxBackoff)), "after %d attempts", attempts+1)
		last = wait
	}

	g.Expect(last).To(Equal(MaxBackoff))
}

func TestResumeAt(t *testing.T) {
	for name, tt := range map[string]struct{ tried, want time.Duration }{
		"at first":      {0, MinBackoff},
		"after a while": {40 * time.Second, 40 * time.Second},
		"after hours":   {3 * time.Hour, MaxBackoff},
	} {
		t.Run(name, func(t *testing.T) {
			r := Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Time: metav1.NewTime(noon.Add(-tt.tried)), LastTransitionTime: metav1.NewTime(noon),
				},
			}
			NewWithT(t).Expect(resumeAt(r).Sub(noon)).To(Equal(tt.want))
		})
	}
}

func TestCountAttempts(t *testing.T) {
	for name, tt := range map[string]struct {
		revisions []Revision
		want      int
	}{
		"none":                           {nil, 0},
		"unavailable in a row":           {[]Revision{unavailable, unavailable, unavailable}, 1},
		"rejected":                       {[]Revision{rejected, rejected}, 2},
		"unavailable, with a rollback":   {[]Revision{unavailable, unavailable, rolledBack, unavailable}, 2},
		"interrupted does not count":     {[]Revision{rejected, interrupted}, 1},
		"something else deployed before": {[]Revision{rejected, replaced, rejected}, 1},
		"requested again":                {[]Revision{rejected, rejected, requestedAgain}, 1},
		"... and rolled back":            {[]Revision{rejected, rolledBack, requestedAgain, rolledBack}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := history(tt.revisions...).Attempts("wanted")
			NewWithT(t).Expect(countAttempts(attempts)).To(Equal(tt.want))
		})
	}
}
