// Package release runs the Helm releases of providers. It is the only importer of Helm's action,
// kube, storage and release packages, so that another Helm is this package's change alone.
//
// A reconcile asks an Engine for this. Observe lists what storage holds of a release without
// decoding any of it. Decide, a pure function, tells from that what state the release is in. Apply
// and Uninstall run one action for that state and return as soon as the API server has taken the
// objects: nobody waits here for anything to become ready. Read gives the objects of a revision to
// whoever watches their health, and Compare and Correct see to it that they stay as the revision
// says.
//
// Storage is Helm's own, one Secret per revision, so that the helm programs see, roll back and
// uninstall what was made here. All that Capstan has to know of a revision later is in the labels
// of its Secret.
//
// The caller guarantees that one Engine at a time acts on a cluster's releases, by leader election.
// Recovery rests on it: a revision that another holder left pending cannot be in work any more.
package release
