package release

import (
	"fmt"
	"time"
)

// Policy is what a release's owner wants done in states that leave a choice.
type Policy struct {
	// Retries is how often what failed is tried again.
	Retries int
	// Timeout is how long what could not be applied for a passing reason is tried before it counts
	// as failed.
	Timeout time.Duration
	// RollBack returns to the last healthy revision when what is desired fails.
	RollBack bool
	// Revert undoes what other programs did, without it that is held until something else is
	// desired.
	Revert bool
	// Known says that the release was there when it was last looked at.
	Known bool
	// Changed says that the owner asks for something else since then, Requested that a person asks
	// for another attempt now.
	Changed, Requested bool
	Now                time.Time
}

// Verb is what to do.
type Verb string

// The verbs.
const (
	// Keep: nothing is to be done.
	Keep Verb = "Keep"
	// Act: Engine.Apply or Engine.Rollback, whichever leads to what is desired.
	Act Verb = "Act"
	// RollBack to Choice.Revision.
	RollBack Verb = "RollBack"
	// Await: look again at Choice.Until, or when the release changes.
	Await Verb = "Await"
	// Hold: another program changed the release, and that is respected.
	Hold Verb = "Hold"
	// GiveUp: nothing is done until something else is desired.
	GiveUp Verb = "GiveUp"
)

// Choice is what Choose found best.
type Choice struct {
	Verb Verb
	// Revision to return to.
	Revision Revision
	// Until is when to look again.
	Until time.Time
	// Attempts is how often what is desired has failed so far.
	Attempts int
}

// Between these, each attempt waits twice as long as the one before.
const (
	ShortestRetry = 5 * time.Second
	LongestRetry  = 10 * time.Minute
)

// Choose says what to do about a release in a state. digest is that of what is desired. It is a
// pure function of what storage holds, so that an operator that was restarted chooses the same.
func Choose(o Observation, digest string, state State, p Policy) Choice {
	switch state.Condition {
	case InSync:
		return Choice{Verb: Keep}
	case Pending:
		return Choice{Verb: Await, Until: state.Until}
	case Absent:
		return heldIf(p.Known && !p.Changed && !p.Revert && !p.Requested)
	case Uninstalled, Foreign:
		last, exists := o.LastOwn()
		return heldIf(exists && last.Digest == digest && !p.Revert)
	case Abandoned, RollbackFailed:
		return chooseAfterRollback(o, digest, state, p)
	case Failed:
		return chooseAfterFailure(o, digest, p)
	case RolledBack:
		return retry(o.Attempts(digest), state.Revision.Changed, Choice{Verb: Act}, p)
	default:
		return Choice{Verb: Act}
	}
}

// chooseAfterRollback brings to an end what was cut off or failed: a return to an earlier revision
// before anything else.
func chooseAfterRollback(o Observation, digest string, state State, p Policy) Choice {
	target, exists := o.Find(state.Revision.RollbackTo)
	rollBack := Choice{Verb: RollBack, Revision: target}

	switch {
	case !exists && state.Condition == RollbackFailed:
		return Choice{Verb: GiveUp}
	case !exists || len(o.Attempts(digest)) == 0:
		return Choice{Verb: Act}
	case state.Condition == Abandoned:
		return rollBack
	}

	return retry(o.failedRollbacks(), state.Revision.Changed, rollBack, p)
}

func heldIf(held bool) Choice {
	if held {
		return Choice{Verb: Hold}
	}

	return Choice{Verb: Act}
}

// chooseAfterFailure returns to the last healthy revision first, so that what worked works again
// while the rest is sorted out. What may pass by itself is given its time before.
func chooseAfterFailure(o Observation, digest string, p Policy) Choice {
	newest, _ := o.Newest()
	attempts := o.Attempts(digest)

	act := Choice{Verb: Act, Attempts: count(attempts)}
	if len(attempts) == 0 || p.Requested {
		return act
	}

	if newest.Failure == Unavailable && p.Now.Before(attempts[len(attempts)-1].Created.Add(p.Timeout)) {
		return waitThen(act, newest.Changed.Add(pause(len(attempts))), p)
	}

	if healthy, exists := o.LastHealthy(digest); exists && p.RollBack {
		return Choice{Verb: RollBack, Revision: healthy, Attempts: act.Attempts}
	}

	return retry(attempts, newest.Changed, Choice{Verb: Act}, p)
}

// retry makes a choice after a while, unless it was made too often.
func retry(attempts []Revision, since time.Time, choice Choice, p Policy) Choice {
	choice.Attempts = count(attempts)
	if p.Requested {
		return choice
	}

	if choice.Attempts > p.Retries {
		return Choice{Verb: GiveUp, Attempts: choice.Attempts}
	}

	return waitThen(choice, since.Add(pause(len(attempts))), p)
}

// count is how many attempts there were; those in a row that could not be applied for a passing
// reason count as one.
func count(attempts []Revision) int {
	n := 0

	for i, r := range attempts {
		if r.Failure != Unavailable || i == 0 || attempts[i-1].Number != r.Number+1 {
			n++
		}
	}

	return n
}

func waitThen(choice Choice, until time.Time, p Policy) Choice {
	if p.Now.Before(until) {
		return Choice{Verb: Await, Until: until, Attempts: choice.Attempts}
	}

	return choice
}

// pause is how long to wait after that many attempts.
func pause(attempts int) time.Duration {
	wait := ShortestRetry
	for range attempts - 1 {
		wait = min(2*wait, LongestRetry)
	}

	return wait
}

// failedRollbacks are the newest revisions, newest first, that should have returned to an earlier
// one and failed.
func (o Observation) failedRollbacks() []Revision {
	for i, r := range o.Revisions {
		if r.RollbackTo == 0 || r.Status != StatusFailed {
			return o.Revisions[:i]
		}
	}

	return o.Revisions
}

// String is for logs.
func (c Choice) String() string {
	if c.Verb == RollBack {
		return fmt.Sprintf("%s to revision %d", c.Verb, c.Revision.Number)
	}

	return string(c.Verb)
}
