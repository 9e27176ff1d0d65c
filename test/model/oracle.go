package model

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Oracle knows what users asked for, and checks what became of it.
type Oracle struct {
	// asked is what the resource asked for since it was created; the last one counts.
	asked []Wanted
	// epoch counts what users asked for. settled is the epoch in which nothing was left to do.
	epoch, settled int
	// held is the number of the newest revision if another program made it after that.
	held int
	// uninstalled is set if another program has removed the release since, and gone if it did when nothing was left to
	// do.
	uninstalled, gone bool
	// begun has which of asked was the last one when a revision was seen first, by the revision's number.
	begun map[int]int
	// before is the snapshot that was checked last.
	before Snapshot
}

// Created tells the oracle that the resource was created.
func (o *Oracle) Created(wanted Wanted) {
	*o = Oracle{epoch: o.epoch, begun: map[int]int{}}
	o.Asked(wanted)
}

// Asked tells the oracle that the resource was changed.
func (o *Oracle) Asked(wanted Wanted) {
	o.asked = append(o.asked, wanted)
	o.Requested()
}

// Requested tells the oracle that a user requested a reconcile.
func (o *Oracle) Requested() {
	o.epoch++
	o.held, o.uninstalled, o.gone = 0, false, false
}

// wanted returns what the resource asks for.
func (o *Oracle) wanted() Wanted { return o.asked[len(o.asked)-1] }

// Check checks what has changed since the last call. It returns nil if all is well.
func (o *Oracle) Check(now Snapshot) *Violation {
	if len(o.before.Records) > 0 && len(now.Records) == 0 {
		o.uninstalled, o.gone = true, o.settled == o.epoch
	}

	for _, record := range slices.Backward(now.Records) {
		if v := o.checkRecord(now, record); v != nil {
			v.Snapshot = now
			v.Text = fmt.Sprintf("revision %d: %s", record.Number, v.Text)

			return v
		}
	}

	o.before = now

	return nil
}

// checkRecord checks what has changed in a revision.
func (o *Oracle) checkRecord(now Snapshot, record Record) *Violation {
	before, existed := o.before.find(record.Number)
	if !existed {
		o.begun[record.Number] = len(o.asked) - 1
	}

	switch {
	case existed && record.Ours() && record.Status == v1alpha2.RevisionFailed && before.Status != v1alpha2.RevisionFailed:
		return checkFailure(record)
	case existed:
		return nil
	case record.Ours():
		return o.checkOwn(now, record)
	case o.settled == o.epoch:
		o.held = record.Number
	}

	return nil
}

// checkOwn checks a revision that the operator has begun.
func (o *Oracle) checkOwn(now Snapshot, record Record) *Violation {
	switch {
	case o.held != 0:
		return violates(Hold, "revision %d of another program is kept until the resource changes", o.held)
	case o.gone:
		return violates(Hold, "another program has uninstalled it, which is respected until the resource changes")
	case !o.before.convertible(record.Content.Version):
		return violates(Convertible, "the managers of %s cannot convert what was stored before as %v",
			record.Content.Version, o.before.Stored)
	case record.RollbackTo != 0:
		return o.checkRollback(now, record)
	case !slices.Contains(o.asked, record.Wanted):
		return violates(Asked, "no user asked for it")
	case o.settled == o.epoch && worked(now, record):
		return violates(Asked, "no user asked for it again")
	default:
		return nil
	}
}

// worked reports whether the revision before was the operator's, and became healthy: then an edit of an input
// cannot be meant to fix it.
func worked(now Snapshot, record Record) bool {
	before, exists := now.find(record.Number - 1)
	return exists && before.Ours() && before.Healthy && before.Status != v1alpha2.RevisionFailed && before.RollbackTo == 0
}

// checkRollback checks an automatic rollback.
func (o *Oracle) checkRollback(now Snapshot, record Record) *Violation {
	target, exists := now.find(record.RollbackTo)
	if !exists {
		return nil // it was the oldest revision, and the new one has replaced it
	}

	newer := func(r Record) bool {
		return r.Number > target.Number && r.Number < record.Number && !r.Wanted.Paused && o.mayRunAgain(now, r)
	}
	passing := func(r Record) bool {
		return r.Number == record.Number-1 && r.RollbackTo == 0 && r.Failure == v1alpha2.FailureUnavailable &&
			record.Time.Time.Before(r.Time.Add(Timeout))
	}

	switch {
	case !target.Healthy:
		return violates(Target, "revision %d was never healthy", target.Number)
	case target.Wanted.Paused && !o.mayBePaused(record.Number-1):
		return violates(Target, "revision %d was paused, and the resource is not", target.Number)
	case slices.ContainsFunc(now.Records, newer):
		return violates(Target, "there is a newer revision than %d that may run again", target.Number)
	case slices.ContainsFunc(now.Records, passing):
		return violates(Passing, "the attempt failed for a reason that may go away by itself")
	default:
		return nil
	}
}

// mayRunAgain reports whether the operator may return to a revision.
func (o *Oracle) mayRunAgain(now Snapshot, r Record) bool {
	complete := r.deployed() || r.Status == v1alpha2.RevisionSuperseded

	return complete && r.Healthy && (o.wanted().Paused || !r.Wanted.Paused) && now.convertible(r.Content.Version)
}

// hasTarget reports whether there is a revision to roll back to when a content fails. The same content
// would change nothing.
func (o *Oracle) hasTarget(now Snapshot, failed Content) bool {
	i := slices.IndexFunc(now.Records, func(r Record) bool { return o.mayRunAgain(now, r) })
	return i >= 0 && now.Records[i].Content != failed
}

// mayBePaused reports whether the resource has asked for a paused provider since a revision was begun: the
// operator may not have seen what it asked for later.
func (o *Oracle) mayBePaused(since int) bool {
	return slices.ContainsFunc(o.asked[o.begun[since]:], func(w Wanted) bool { return w.Paused })
}

// checkFailure checks why a revision failed.
func checkFailure(record Record) *Violation {
	age := record.LastTransitionTime.Sub(record.Time.Time)

	switch {
	case record.Failure == v1alpha2.FailureRejected && Find(record.Content.Version).Flaw != Refused:
		return violates(Passing, "it failed although the API server refused nothing")
	case record.Failure == v1alpha2.FailureUnhealthy && age < Timeout:
		return violates(Passing, "it failed after %s, and its timeout is %s", age, Timeout)
	default:
		return nil
	}
}

// CheckIdle checks a provider with which nothing happens any more. It returns nil if all is well.
func (o *Oracle) CheckIdle(now Snapshot) *Violation {
	if v := o.Check(now); v != nil {
		return v
	}

	if v := cmp.Or(o.checkIdle(now), o.checkReady(now)); v != nil {
		v.Snapshot = now
		v.Text = fmt.Sprintf("nothing happens any more, wanted is %+v: %s", o.wanted(), v.Text)

		return v
	}

	return nil
}

// Settled tells the oracle that the operator has done all that was asked for, or has given up.
func (o *Oracle) Settled() { o.settled = o.epoch }

// checkIdle checks whether what is wanted is installed, or what ran before if it cannot be.
func (o *Oracle) checkIdle(now Snapshot) *Violation {
	wanted := Find(o.wanted().Version)
	reachable := wanted.Flaw == None && now.convertible(wanted.Name)

	newest, installed := now.newest()
	if !installed {
		return o.checkAbsent(reachable)
	}

	// What was interrupted is no reason to roll back: the resource has to ask for something possible.
	failed := newest.Ours() && newest.Status == v1alpha2.RevisionFailed && newest.Failure != v1alpha2.FailureInterrupted

	switch {
	case newest.Ours() && reachable && (newest.Wanted != o.wanted() || !newest.deployed()):
		return violates(Converges, "the wanted version is not deployed")
	case failed && o.hasTarget(now, newest.Content):
		return violates(Converges, "nothing is deployed, although a revision may run again")
	case now.deployed() > 1:
		return violates(History, "more than one revision is deployed")
	case newest.Status.Pending() && reachable:
		return violates(History, "a revision is pending")
	}

	return checkDeployed(now, newest)
}

// checkAbsent checks a provider that is not installed.
func (o *Oracle) checkAbsent(reachable bool) *Violation {
	if reachable && !o.uninstalled {
		return violates(Converges, "it is not installed")
	}

	return nil
}

// checkReady checks the conditions of a provider with which nothing happens any more.
func (o *Oracle) checkReady(now Snapshot) *Violation {
	newest, installed := now.newest()
	if !installed || now.Ready == "" || newest.waits() {
		return nil
	}

	ready, stalled := now.Ready == metav1.ConditionTrue, now.Stalled == metav1.ConditionTrue
	healthy := newest.runs()
	wanted := newest.Wanted == o.wanted()

	// What is installed for an earlier request of users is not what they want, unless another program has made it since.
	if ready && (!healthy || stalled) || newest.Ours() && ready != (healthy && wanted) {
		return violates(Ready, "Ready is %s, and Stalled is %s", now.Ready, now.Stalled)
	}

	if newest.Ours() && !stalled && (!healthy || !wanted) {
		return violates(Ready, "Stalled is %s", now.Stalled)
	}

	return nil
}

// checkDeployed checks the objects and the status of the newest revision, if it is deployed. Those of a revision that
// another program has made are neither corrected nor believed.
func checkDeployed(now Snapshot, newest Record) *Violation {
	switch {
	case !newest.deployed(), newest.waits(), !newest.Ours():
		return nil
	case newest.runs() && !newest.Healthy:
		return violates(Target, "a later revision could not be rolled back to it: it was never seen healthy")
	case !now.runs(newest.Content):
		return violates(Objects, "the objects are not those of the newest revision, %v", newest.Objects())
	case now.Contract != Find(newest.Content.Version).Contract:
		return violates(Contract, "the status has another contract than the newest revision")
	default:
		return nil
	}
}

// CheckGone checks that nothing is left of a provider whose resource is gone. It returns nil if all is
// well.
func (o *Oracle) CheckGone(now Snapshot) *Violation {
	if len(now.Records) == 0 && len(now.Objects) == 0 {
		return nil
	}

	v := violates(Removal, "the resource is gone, but not everything else")
	v.Snapshot = now

	return v
}
