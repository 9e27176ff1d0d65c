package release

import (
	"fmt"
	"time"
)

// Condition is what a release is in, seen from what it should be.
type Condition string

// The conditions of a release. Apply says what it does in each.
const (
	// Absent: there is no release of that name.
	Absent Condition = "Absent"
	// Pending: somebody is, or may be, at work on it. Look again at State.Until, or when its
	// Secrets change.
	Pending Condition = "Pending"
	// Abandoned: whoever was at work on it is gone.
	Abandoned Condition = "Abandoned"
	// Uninstalled: somebody uninstalled it and kept its history.
	Uninstalled Condition = "Uninstalled"
	// Corrupt: the record of the newest revision cannot be read.
	Corrupt Condition = "Corrupt"
	// Foreign: somebody else made the newest revision, by helm upgrade or helm rollback. What
	// follows is a matter of policy.
	Foreign Condition = "Foreign"
	// OutOfSync: the newest revision was made from something else than what is desired.
	OutOfSync Condition = "OutOfSync"
	// Failed: the newest revision was made from what is desired, and failed. Whether to try again
	// is a matter of policy.
	Failed Condition = "Failed"
	// RolledBack: what is desired failed, and the newest revision returned to an earlier one.
	// Whether to try again is a matter of policy.
	RolledBack Condition = "RolledBack"
	// RollbackFailed: what is desired failed, and so did the return to an earlier revision.
	RollbackFailed Condition = "RollbackFailed"
	// InSync: the newest revision is deployed and was made from what is desired.
	InSync Condition = "InSync"
)

// State is what Decide found.
type State struct {
	Condition Condition
	// Revision is the newest one; zero if Absent.
	Revision Revision
	// Message tells a person what was found.
	Message string
	// Until, if Pending because of another program, is when that program is taken for dead.
	Until time.Time
}

// Rules are what Decide judges by.
type Rules struct {
	// Holder is who asks.
	Holder string
	// ForeignGrace is how long another program may leave its work unrecorded before it is taken for
	// dead.
	ForeignGrace time.Duration
	Now          time.Time
}

// Decide tells what state an observed release is in. digest is that of what is desired, from
// Engine.Digest.
func Decide(o Observation, digest string, rules Rules) State {
	newest, exists := o.Newest()
	state := func(c Condition, format string, args ...any) State {
		return State{Condition: c, Revision: newest, Message: fmt.Sprintf(format, args...)}
	}

	switch {
	case o.Busy:
		return state(Pending, "an action on release %s/%s is running", o.Namespace, o.Name)
	case !exists:
		return state(Absent, "there is no release %s/%s", o.Namespace, o.Name)
	case newest.Unreadable:
		return state(Corrupt, "the record of revision %d cannot be read", newest.Number)
	case newest.Status.Pending() && newest.Ours():
		return state(
			Abandoned,
			"revision %d was left %s by %s",
			newest.Number,
			newest.Status,
			whose(newest.Holder, rules.Holder),
		)
	case newest.Status.Pending(), newest.Status == StatusUninstalling:
		return decideForeignWork(o, newest, rules)
	case newest.Status == StatusUninstalled:
		return state(Uninstalled, "revision %d was uninstalled, its history kept", newest.Number)
	case !newest.Ours() && newest.Origin == 0:
		return state(Foreign, "revision %d was made by another program", newest.Number)
	case !newest.Ours():
		return state(
			Foreign,
			"revision %d was made from revision %d by another program, such as helm rollback",
			newest.Number,
			newest.Origin,
		)
	default:
		return decideOwn(o, newest, digest)
	}
}

// decideOwn judges a revision that Capstan made and ended.
func decideOwn(o Observation, newest Revision, digest string) State {
	state := func(c Condition, format string, args ...any) State {
		return State{Condition: c, Revision: newest, Message: fmt.Sprintf(format, args...)}
	}

	switch {
	case newest.Digest != digest && newest.RollbackTo != 0 && len(o.Attempts(digest)) > 0:
		return decideRollback(newest)
	case newest.Digest != digest:
		return state(OutOfSync, "revision %d was made from another chart or other values", newest.Number)
	case newest.Status == StatusFailed:
		return state(Failed, "revision %d failed", newest.Number)
	case newest.Status == StatusDeployed:
		return state(InSync, "revision %d is deployed", newest.Number)
	default: // superseded by a revision whose record is gone, or a status that Helm does not know
		return state(OutOfSync, "revision %d is %q though it is the newest", newest.Number, newest.Status)
	}
}

// decideRollback judges a revision that returned to an earlier one, because what is desired had
// failed.
func decideRollback(newest Revision) State {
	if newest.Status == StatusFailed {
		return State{Condition: RollbackFailed, Revision: newest, Message: fmt.Sprintf(
			"revision %d, the return to revision %d, failed", newest.Number, newest.RollbackTo)}
	}

	return State{
		Condition: RolledBack,
		Revision:  newest,
		Message:   fmt.Sprintf("revision %d returned to revision %d", newest.Number, newest.RollbackTo),
	}
}

// decideForeignWork judges a release that a person's program is at work on, or was when it died:
// nothing but time tells which. An uninstall that stopped half way is such work too: Capstan's own
// is run again by whoever wants the release gone, never seen from here.
func decideForeignWork(o Observation, newest Revision, rules Rules) State {
	until := newest.Changed.Add(rules.ForeignGrace)
	if rules.Now.Before(until) {
		return State{Condition: Pending, Revision: newest, Until: until, Message: fmt.Sprintf(
			"another program is at work on release %s/%s: revision %d is %s since %s; it is waited for until %s. If no helm command is running "+
				"any more, `%s` ends this at once",
			o.Namespace,
			o.Name,
			newest.Number,
			newest.Status,
			clock(newest.Changed),
			clock(until),
			wayOut(o, newest),
		)}
	}

	return State{Condition: Abandoned, Revision: newest, Message: fmt.Sprintf(
		"another program left revision %d %s at %s and has not been heard of since",
		newest.Number,
		newest.Status,
		clock(newest.Changed),
	)}
}

// wayOut is the command that ends what another program began.
func wayOut(o Observation, newest Revision) string {
	if newest.Status == StatusPendingUpgrade || newest.Status == StatusPendingRollback {
		return fmt.Sprintf("helm rollback %s -n %s", o.Name, o.Namespace)
	}

	return fmt.Sprintf("helm uninstall %s -n %s", o.Name, o.Namespace)
}

func whose(holder, own string) string {
	if holder == own {
		return "this process, which could not record its end"
	}

	return fmt.Sprintf("%q, which is gone", holder)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
