package release

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// entry is a revision of ours; changes make it something else. Revisions are numbered from the
// oldest.
type entry func(*Revision)

func of(status Status, digest string, changes ...entry) Revision {
	r := Revision{Status: status, Digest: digest}
	for _, change := range changes {
		change(&r)
	}

	return r
}

var (
	healthy   entry = func(r *Revision) { r.Healthy = true }
	foreign   entry = func(r *Revision) { r.Origin, r.Digest = -1, "" }
	failedFor       = func(f Failure) entry { return func(r *Revision) { r.Failure = f } }
	back            = func(to int) entry { return func(r *Revision) { r.RollbackTo = to } }
	ago             = func(d time.Duration) entry {
		return func(r *Revision) { r.Created, r.Changed = noon.Add(-d), noon.Add(-d) }
	}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// past is an observation of revisions given oldest first, made just now unless they say otherwise.
func past(revisions ...Revision) Observation {
	for i := range revisions {
		r := &revisions[i]

		r.Number = i + 1
		if r.Origin += r.Number; r.Origin < r.Number {
			r.Origin = 0
		}

		if r.Created.IsZero() {
			r.Created, r.Changed = noon, noon
		}
	}

	slices.Reverse(revisions)

	return Observation{Namespace: "ns", Name: "core", Revisions: revisions}
}

func TestChoose(t *testing.T) {
	policy := func(changes ...func(*Policy)) Policy {
		p := Policy{Retries: 1, Timeout: 5 * time.Minute, RollBack: true, Known: true, Now: noon.Add(time.Second)}
		for _, change := range changes {
			change(&p)
		}

		return p
	}
	revert := func(p *Policy) { p.Revert = true }
	changed := func(p *Policy) { p.Changed = true }
	requested := func(p *Policy) { p.Requested = true }
	unknown := func(p *Policy) { p.Known = false }
	none := func(p *Policy) { p.RollBack = false }
	later := func(p *Policy) { p.Now = noon.Add(time.Minute) }
	muchLater := func(p *Policy) { p.Now = noon.Add(time.Hour) }

	worked := of(StatusSuperseded, "old", healthy)
	rejected := of(StatusFailed, "wanted", failedFor(Rejected))

	rolledBack := of(StatusDeployed, "old", back(1))
	for name, tt := range map[string]struct {
		observed Observation
		policy   Policy
		want     Verb
		to       int
	}{
		"never installed":                                 {past(), policy(unknown), Act, 0},
		"uninstalled by a person":                         {past(), policy(), Hold, 0},
		"uninstalled by a person, to be reverted":         {past(), policy(revert), Act, 0},
		"uninstalled by a person, then the spec changed":  {past(), policy(changed), Act, 0},
		"uninstalled by a person, then asked for":         {past(), policy(requested), Act, 0},
		"uninstalled, history kept":                       {past(of(StatusUninstalled, "wanted")), policy(), Hold, 0},
		"uninstalled, history kept, something new wanted": {past(of(StatusUninstalled, "old")), policy(), Act, 0},
		"in sync":                                        {past(of(StatusDeployed, "wanted")), policy(), Keep, 0},
		"made from something else":                       {past(of(StatusDeployed, "old")), policy(), Act, 0},
		"a person's rollback":                            {past(of(StatusSuperseded, "old"), of(StatusSuperseded, "wanted"), of(StatusDeployed, "", foreign)), policy(), Hold, 0},
		"a person's rollback, to be reverted":            {past(of(StatusSuperseded, "wanted"), of(StatusDeployed, "", foreign)), policy(revert), Act, 0},
		"a person's rollback, something new wanted":      {past(of(StatusSuperseded, "old"), of(StatusDeployed, "", foreign)), policy(), Act, 0},
		"a person's release, never ours":                 {past(of(StatusDeployed, "", foreign)), policy(), Act, 0},
		"a first install that was rejected":              {past(rejected), policy(), Await, 0},
		"... after a while":                              {past(rejected), policy(later), Act, 0},
		"... too often":                                  {past(rejected, rejected), policy(muchLater), GiveUp, 0},
		"... too often, then asked for":                  {past(rejected, rejected), policy(muchLater, requested), Act, 0},
		"an upgrade that was rejected":                   {past(worked, rejected), policy(), RollBack, 1},
		"an upgrade that was rejected, not to roll back": {past(worked, rejected), policy(none), Await, 0},
		"an upgrade that was rejected, nothing healthy":  {past(of(StatusSuperseded, "old"), rejected), policy(), Await, 0},
		"an upgrade that was not healthy in time":        {past(worked, of(StatusFailed, "wanted", failedFor(Unhealthy))), policy(), RollBack, 1},
		"an upgrade that a crash cut off":                {past(worked, of(StatusFailed, "wanted", failedFor(Interrupted))), policy(), Act, 0},
		"an upgrade that could not be applied for now":   {past(worked, of(StatusFailed, "wanted", failedFor(Unavailable))), policy(), Await, 0},
		"... tried again":                                {past(worked, of(StatusFailed, "wanted", failedFor(Unavailable))), policy(later), Act, 0},
		"... for too long":                               {past(worked, of(StatusFailed, "wanted", failedFor(Unavailable), ago(time.Hour)), of(StatusFailed, "wanted", failedFor(Unavailable))), policy(later), RollBack, 1},
		"rolled back":                                    {past(worked, rejected, rolledBack), policy(), Await, 0},
		"rolled back a while ago":                        {past(worked, rejected, rolledBack), policy(later), Act, 0},
		"rolled back too often":                          {past(worked, rejected, rolledBack, rejected, rolledBack), policy(muchLater), GiveUp, 0},
		"rolled back, and the second attempt fails":      {past(worked, rejected, rolledBack, rejected), policy(), RollBack, 1},
		"rolled back, healthy since, the next fails":     {past(worked, rejected, of(StatusSuperseded, "old", back(1), healthy), rejected), policy(), RollBack, 3},
		"rolled back, something new wanted":              {past(worked, of(StatusFailed, "tried", failedFor(Rejected)), rolledBack), policy(), Act, 0},
		"a rollback that failed":                         {past(worked, rejected, of(StatusFailed, "old", back(1))), policy(), Await, 0},
		"a rollback that failed, a while ago":            {past(worked, rejected, of(StatusFailed, "old", back(1))), policy(later), RollBack, 1},
		"a rollback that failed too often":               {past(worked, rejected, of(StatusFailed, "old", back(1)), of(StatusFailed, "old", back(1))), policy(muchLater), GiveUp, 0},
		"a rollback that a crash cut off":                {past(worked, rejected, of(StatusPendingRollback, "old", back(1))), policy(), RollBack, 1},
		"what ran before is wanted again":                {past(of(StatusSuperseded, "wanted", healthy), of(StatusFailed, "tried"), of(StatusDeployed, "wanted", back(1))), policy(), Keep, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state := Decide(tt.observed, "wanted", Rules{Holder: "me", ForeignGrace: time.Minute, Now: tt.policy.Now})
			choice := Choose(tt.observed, "wanted", state, tt.policy)
			g.Expect(choice.Verb).To(Equal(tt.want), "%s: %s", state.Condition, state.Message)
			g.Expect(choice.Revision.Number).To(Equal(tt.to))
			g.Expect(choice.Until.IsZero()).To(Equal(tt.want != Await))
		})
	}
}

func TestWhatFailsInARowIsTriedLessAndLessOften(t *testing.T) {
	g := NewWithT(t)
	last := time.Duration(0)

	for i := range 12 {
		wait := pause(i + 1)
		g.Expect(wait).To(Or(BeNumerically(">", last), Equal(LongestRetry)), "after %d attempts", i+1)
		last = wait
	}

	g.Expect(last).To(Equal(LongestRetry))
}

func TestTroubleThatPassesCountsOnce(t *testing.T) {
	g := NewWithT(t)
	down := of(StatusFailed, "wanted", failedFor(Unavailable))
	rejected := of(StatusFailed, "wanted", failedFor(Rejected))
	attempts := func(revisions ...Revision) int { return count(past(revisions...).Attempts("wanted")) }
	g.Expect(attempts()).To(Equal(0))
	g.Expect(attempts(down, down, down)).To(Equal(1))
	g.Expect(attempts(rejected, rejected)).To(Equal(2))
	g.Expect(attempts(down, down, of(StatusDeployed, "old", back(1)), down)).To(Equal(2))
}
