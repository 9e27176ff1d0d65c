// Package release runs the Helm releases of providers.
//
// A reconcile uses an Engine, and the functions of package state to decide what to do.
// Engine.Observe reads the history of a release without decoding any of its revisions,
// Engine.Determine returns its state, and state.Next the action. Engine.Prepare with Prepared.Apply,
// Engine.Rollback and Engine.Uninstall run one action and return as soon as the API server has
// accepted the objects; they do not wait for anything to become ready. Engine.Read returns the
// objects of a revision, so that the caller can watch their health, and Engine.Compare and
// Engine.Correct keep them as the revision defines them.
//
// Storage is Helm's own, one Secret for each revision, so that the helm programs can list, roll
// back and uninstall what Capstan has installed. What Capstan knows of a revision is its entry in
// status.history; the record has what Helm needs, and its one label tells who created the revision.
//
// Only one Engine at a time may act on the releases of a cluster, which the caller guarantees by
// leader election. Recovery relies on it: a revision that another holder left pending is not in
// progress any more.
//
// Helm's library renders charts, and encodes and stores records, by package helm. What happens to them in between, such
// as the status of revisions, has Helm's meaning, but is this package's: Helm's own actions cannot be resumed, and know
// neither waves nor policies. Charts of providers have no hooks, so none are run.
package release
