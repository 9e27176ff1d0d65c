package state

import (
	"fmt"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// State is the state of a release, compared with its desired state.
type State string

// The states of a release.
const (
	// Absent: the release does not exist.
	Absent State = "Absent"
	// RecordsLost: the release has objects but no history, for example because its Secrets were deleted.
	// An uninstall deletes the objects first.
	RecordsLost State = "RecordsLost"
	// Locked: this process or another program is running an action on the release, or may be.
	Locked State = "Locked"
	// Interrupted: an action on the release was started and will not be completed, because the
	// process that ran it is gone.
	Interrupted State = "Interrupted"
	// Uninstalled: another program uninstalled the release and kept its history.
	Uninstalled State = "Uninstalled"
	// Corrupt: the newest revision cannot be decoded.
	Corrupt State = "Corrupt"
	// Unconfirmed: nothing but its own Secret tells that Capstan has created the newest revision for the resource.
	Unconfirmed State = "Unconfirmed"
	// Unmanaged: another program created the newest revision, for example with helm upgrade or helm
	// rollback.
	Unmanaged State = "Unmanaged"
	// OutOfSync: the newest revision was created from another chart or other values.
	OutOfSync State = "OutOfSync"
	// Failed: the newest revision was created from the desired chart and values, and failed.
	Failed State = "Failed"
	// RolledBack: the desired revision failed, and Capstan rolled back to an earlier one.
	RolledBack State = "RolledBack"
	// RollbackFailed: the desired revision failed, and so did the rollback.
	RollbackFailed State = "RollbackFailed"
	// InSync: the newest revision is deployed and was created from the desired chart and values.
	InSync State = "InSync"
)

// Observed is the state of a release at the time its history was read.
type Observed struct {
	State State
	// Revision is the newest one. It is zero if the release is Absent, or its records are lost.
	Revision Revision
	// Message describes the state to the user.
	Message string
	// Until is when a release that another program has Locked is considered Interrupted.
	Until time.Time
}

// Rules are what Determine depends on, in addition to the history.
type Rules struct {
	// LockTimeout is how long another program may leave a release Locked without writing to it.
	LockTimeout time.Duration
	Now         time.Time
}

// Determine returns the state of a release, where digest identifies its desired state.
func Determine(history History, digest string, rules Rules) Observed {
	newest, exists := history.Newest()

	observed := func(s State, format string, args ...any) Observed {
		return Observed{State: s, Revision: newest, Message: fmt.Sprintf(format, args...)}
	}

	switch {
	case !exists && history.Lost:
		return observed(RecordsLost, "release %s has objects but no history", history.Release)
	case !exists:
		return observed(Absent, "release %s does not exist", history.Release)
	case newest.Unreadable:
		return observed(Corrupt, "revision %d cannot be read", newest.Number)
	case newest.Status.Pending() && newest.Ours():
		// Only one process acts on the releases of a cluster, so the one that left this is gone.
		return observed(Interrupted, "revision %d was left %s", newest.Number, newest.Status)
	case newest.Status.Pending(), newest.Status == v1alpha2.RevisionUninstalling:
		return determineLocked(history, newest, rules)
	case newest.Ours() && !newest.Confirmed():
		return observed(Unconfirmed, "revision %d is not known to be this resource's", newest.Number)
	case newest.Status == v1alpha2.RevisionUninstalled:
		return observed(Uninstalled, "revision %d was uninstalled, its history kept", newest.Number)
	case !newest.Ours() && newest.Origin == 0:
		return observed(Unmanaged, "revision %d was created by another program", newest.Number)
	case !newest.Ours():
		return observed(Unmanaged, "revision %d was created from revision %d by another program, such as helm rollback",
			newest.Number, newest.Origin)
	default:
		return determineOwn(history, newest, digest)
	}
}

// determineOwn returns the state of a release whose newest revision is Capstan's and completed.
func determineOwn(history History, newest Revision, digest string) Observed {
	observed := func(s State, format string, args ...any) Observed {
		return Observed{State: s, Revision: newest, Message: fmt.Sprintf(format, args...)}
	}

	rollback := newest.ContentDigest != digest && newest.RollbackTo != 0 && len(history.Attempts(digest)) > 0

	switch {
	case rollback && newest.Status == v1alpha2.RevisionFailed:
		return observed(RollbackFailed, "revision %d, the rollback to revision %d, failed",
			newest.Number, newest.RollbackTo)
	case rollback:
		return observed(RolledBack, "revision %d is a rollback to revision %d", newest.Number, newest.RollbackTo)
	case newest.ContentDigest != digest:
		return observed(OutOfSync, "revision %d was created from another chart or other values", newest.Number)
	case newest.Status == v1alpha2.RevisionFailed:
		return observed(Failed, "revision %d failed", newest.Number)
	case newest.Status == v1alpha2.RevisionDeployed:
		return observed(InSync, "revision %d is deployed", newest.Number)
	default:
		// The Secret of a later revision was deleted, or Helm has a status that is unknown here.
		return observed(OutOfSync, "revision %d is %q although it is the newest", newest.Number, newest.Status)
	}
}

// maxLock limits for how long another program may leave a new revision Locked by writing to it again and again.
const maxLock = time.Hour

// determineLocked returns the state of a release that another program was changing. Storage does
// not show if that program still runs, so time decides. An uninstall that stopped half-way is
// treated the same: Capstan retries its own when the provider is deleted, without asking for the
// state.
func determineLocked(history History, newest Revision, rules Rules) Observed {
	until := newest.LastTransitionTime.Add(rules.LockTimeout)

	// A new revision is written a few times. What is renewed for longer than any helm command runs holds up nothing, nor
	// does a record that is not known to be the resource's.
	if limit := newest.Time.Add(maxLock); (newest.Status.Pending() || !newest.Confirmed()) && limit.Before(until) {
		until = limit
	}

	if !rules.Now.Before(until) {
		return Observed{
			State:    Interrupted,
			Revision: newest,
			Message: fmt.Sprintf("another program left revision %d %s, and wrote to it last at %s",
				newest.Number, newest.Status, formatTime(newest.LastTransitionTime.Time)),
		}
	}

	return Observed{
		State:    Locked,
		Revision: newest,
		Until:    until,
		Message: fmt.Sprintf("another program is changing release %s: revision %d is %s since %s; "+
			"waiting until %s; if no helm command is running, run `%s` to continue at once",
			history.Release, newest.Number, newest.Status, formatTime(newest.LastTransitionTime.Time),
			formatTime(until), unlockCommand(history, newest)),
	}
}

// unlockCommand returns the command that completes what another program started.
func unlockCommand(history History, newest Revision) string {
	command := "uninstall"
	if newest.Status == v1alpha2.RevisionPendingUpgrade || newest.Status == v1alpha2.RevisionPendingRollback {
		command = "rollback"
	}

	return fmt.Sprintf("helm %s %s -n %s", command, history.Release.Name, history.Release.Namespace)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
