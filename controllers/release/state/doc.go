// Package state decides what to do with a Helm release. It consists of pure functions of the
// release's history: it makes no request and does not import Helm, so that its decisions can be
// tested in tables, and a restarted process decides as the one before it.
//
// # Protocol
//
// One reconcile of a release repeats four steps:
//
//  1. Read the History: which revisions Helm's storage holds, with the entries of status.history
//     whose digests confirm them. Nothing else is remembered between reconciles.
//  2. Determine the State, by comparing the newest revision with the desired state. A digest of
//     chart, values and everything else that a revision is created from represents the latter.
//  3. Ask Next for the Action that the state and the user's Policy call for.
//  4. Carry the action out. It records its result as a revision of the release, also if it fails;
//     the next round sees that revision as the newest one.
//
// The loop ends with any action but Apply and Rollback. An action that fails without leaving a
// revision ends it too: there is nothing new to decide on.
//
// # What the caller owes
//
// The caller has these duties:
//   - It reads the history again after every action. An action fails if the release has changed
//     since then.
//   - It guarantees, by leader election, that only one process acts on the releases of a cluster. A
//     revision that another holder left pending is therefore not in progress any more.
//   - It decides again at Decision.Until, and when another program writes to the release.
//   - It watches the objects of the newest revision, and records with the revision that they are
//     healthy, or that they did not become healthy in time. Only healthy revisions are rolled back
//     to, and the failure is what the next decision is about.
//   - Before it rolls back, it checks whether the cluster still permits the target. If not, it adds the
//     target to Policy.Refused and decides again.
//   - It clears Policy.Requested after the first action.
//
// # Table
//
// Each line has a state, the action that follows and when it does. The first line that applies
// counts.
//
//	Absent          Hold      it existed before, nothing was asked for since, and external changes are kept
//	Absent          Apply     otherwise
//	RecordsLost     Apply     always
//	Locked          Wait      always
//	Interrupted     Rollback  it was a rollback, its target may still be rolled back to, and the desired state has failed
//	Interrupted     Apply     otherwise
//	Uninstalled     Hold      nothing was asked for since, and external changes are kept
//	Uninstalled     Apply     otherwise
//	Corrupt         Apply     always
//	Unconfirmed     Apply     always
//	Unmanaged       Hold      nothing was asked for since, and external changes are kept, and no action was interrupted
//	Unmanaged       Apply     otherwise
//	OutOfSync       Apply     always
//	Failed          Rollback  a revision may be rolled back to, rollbacks are enabled, and the failure is not temporary
//	Failed          Wait      the time of the next retry has not come
//	Failed          Stop      the retries are used up
//	Failed          Apply     otherwise, and at once if it was interrupted or the user requests it
//	RolledBack      Wait      a wave of the rollback is left and in time, or the time of the next retry has not come
//	RolledBack      Stop      the retries are used up
//	RolledBack      Apply     otherwise, and at once if the user requests it
//	RollbackFailed  Wait      the time of the next retry has not come
//	RollbackFailed  Stop      its target is gone, or may not be rolled back to any more, and the retries are used up
//	RollbackFailed  Apply     its target is gone, or may not be rolled back to any more
//	RollbackFailed  Rollback  otherwise, and at once if the user requests it
//	InSync          None      always
//
// A failure is temporary if the API server, or a webhook that it calls, did not respond. It is
// retried for the duration of Policy.Timeout before it counts as any other. An attempt that was
// interrupted does not count at all.
package state
