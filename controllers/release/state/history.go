package state

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// Revision is one revision of a release: an entry of the history in the status, with what Helm's storage has of it,
// or only the latter if it is not known to be the resource's.
type Revision struct {
	// ReleaseRevision is what the status has of it. Its digest is empty if the status does not know the revision, and is
	// never taken from storage: a Secret alone proves nothing. Its status is that in storage, unless the status of the
	// resource knows better; see Recall. As long as its times are not known, they are when its Secret was created and
	// last written.
	v1alpha2.ReleaseRevision

	// Stored is the status in storage, whatever the status of the resource knows.
	Stored v1alpha2.RevisionStatus
	// Origin is the number of the revision that Capstan wrote the label of the record for; 0 if there is none.
	// Helm copies labels from one revision to the next: if Origin is not Number, another program
	// created this revision by an upgrade of, or a rollback to, the revision Origin.
	Origin int
	// Unreadable is true after an attempt to decode the revision has failed.
	Unreadable bool

	// UID and ResourceVersion of the Secret.
	UID             types.UID
	ResourceVersion string
}

// Staged reports whether objects of the revision have yet to be applied or deleted, because they wait for others.
func (r Revision) Staged() bool { return r.Wave != nil }

// Ours reports whether Capstan created the revision.
func (r Revision) Ours() bool { return r.Origin != 0 && r.Origin == r.Number }

// complete reports whether all objects of the revision were applied.
func (r Revision) complete() bool { return r.Status.Applied() }

// Confirmed reports whether the revision is known to be the resource's. Of older revisions than the newest one, whose
// records are read only when they are needed, it reports whether any digest is known. Other revisions are shown, and
// never acted on.
func (r Revision) Confirmed() bool { return r.Digest != "" }

// Confirms reports whether a record with the digest is that of the revision: what has to be known before objects are
// created, changed or deleted by a record.
func (r Revision) Confirms(digest string) bool { return r.Confirmed() && digest == r.Digest }

// RecordOutdated reports whether the record still has an earlier status of the revision, because the write of a later
// one was lost: programs that read only the record wait for an action that is over.
func (r Revision) RecordOutdated() bool { return r.Ours() && r.Confirmed() && r.Stored != r.Status }

// Or returns the revision as it is known, or as it was read now if its record was written since.
func (r Revision) Or(read Revision) Revision {
	if read.Number == r.Number && read.ResourceVersion == r.ResourceVersion {
		return r
	}

	return read
}

// Announce makes known what is about to be written of a revision: that it is created, or how that has ended. The
// inventory has the objects that the release may have from then on; nil if that is as before. After an error, it is not
// written.
type Announce func(ctx context.Context, revision Revision, inventory []object.Key) error

// Memory is what a resource knows of its release. Actions on the release depend on it, and on nothing else that they do
// not read themselves.
type Memory struct {
	// Revisions are those of the history, newest first, with what the status knows of them.
	Revisions []Revision
	// Last is the number of the last revision that is known to have existed; 0 for none. The next one follows it, also if
	// its record is gone, and records of other programs that are too far ahead are ignored.
	Last int
	// Inventory are the objects that the release has, or may have.
	Inventory []object.Key
	// Kinds are those that the CRDs of the release define. Objects of these kinds need the release's manager: its webhooks
	// admit them, and it processes their finalizers.
	Kinds []schema.GroupResource
	// Verified are objects that are known to be as the newest revision defines them. An upgrade neither reads nor tries
	// those that it defines in the same way.
	Verified []object.Snapshot
	// Owner is the resource as it is recorded with each revision.
	Owner Owner
	// Announce is called before a revision is written; it may be nil.
	Announce Announce
}

// Of returns what is known of a revision.
func (m Memory) Of(number int) Revision {
	for _, revision := range m.Revisions {
		if revision.Number == number {
			return revision
		}
	}

	return Revision{}
}

// Recall completes a revision of storage by what is known of it. Only an uninstall by another program, which is
// respected, is taken from storage, and that an action is over: whether it has failed is known before that is written.
func (r *Revision) Recall(known v1alpha2.ReleaseRevision) {
	stored := r.ReleaseRevision
	r.ReleaseRevision = known

	if known.Time.IsZero() {
		r.Time = stored.Time
	}

	ended := known.Status.Applied() || known.Status == v1alpha2.RevisionFailed

	switch {
	case stored.Status == v1alpha2.RevisionUninstalling, stored.Status == v1alpha2.RevisionUninstalled:
		r.Status = stored.Status
	case known.Status == v1alpha2.RevisionFailed:
	case ended && (stored.Status == v1alpha2.RevisionFailed || stored.Status.Pending()):
	case stored.Status == v1alpha2.RevisionFailed:
		r.Status, r.Failure = v1alpha2.RevisionFailed, v1alpha2.FailureInterrupted
	default:
		r.Status = stored.Status
	}

	if known.LastTransitionTime.IsZero() || r.Status != known.Status {
		r.LastTransitionTime = stored.LastTransitionTime
	}
}

// History is what Helm's storage holds of a release. A release without revisions does not exist.
type History struct {
	Release types.NamespacedName
	// Revisions, newest first.
	Revisions []Revision
	// Lost is true if there are no revisions although objects of the release exist.
	Lost bool
}

// Newest returns the newest revision, if there is any.
func (h History) Newest() (Revision, bool) {
	if len(h.Revisions) == 0 {
		return Revision{}, false
	}

	return h.Revisions[0], true
}

// MaxAhead is how far the number of a revision may be ahead of the last one that is known: other programs count up one
// by one.
const MaxAhead = 1000

// Near returns the history without revisions that no program can have counted up to since the last one that is known;
// 0 if none is.
func (h History) Near(last int) History {
	if last > 0 {
		h.Revisions = slices.DeleteFunc(h.Revisions, func(r Revision) bool { return r.Number > last+MaxAhead })
	}

	return h
}

// Find returns the revision with the given number, if there is one.
func (h History) Find(number int) (Revision, bool) {
	return h.first(func(r Revision) bool { return r.Number == number })
}

// Foreign reports whether the release exists and Capstan has created none of its revisions, nor one
// that a later revision was created from.
func (h History) Foreign() bool {
	_, ours := h.first(func(r Revision) bool { return r.Origin != 0 })
	return len(h.Revisions) > 0 && !ours
}

// RollbackTarget returns the revision to roll back to when the digest fails: the newest one that was
// healthy and that the policy permits. There is none if that has the same digest: to apply the same
// again would change nothing, and an older revision was replaced on purpose.
func (h History) RollbackTarget(digest string, policy Policy) (Revision, bool) {
	target, exists := h.first(func(r Revision) bool { return r.Healthy && r.complete() && policy.permits(r) })

	return target, exists && target.ContentDigest != digest
}

// Select returns at most limit revisions, newest first: those that are acted on before others, which anyone who may
// write Secrets can add. These are the newest revision, the newest healthy one that is paused and that is not, those
// that are not complete, and then the newest of the others.
func (h History) Select(limit int) []Revision {
	if len(h.Revisions) <= limit {
		return h.Revisions
	}

	healthy := map[bool]int{} // by whether it is paused

	for _, r := range slices.Backward(h.Revisions) {
		if r.Confirmed() && r.Healthy && r.complete() {
			healthy[r.Paused] = r.Number
		}
	}

	rank := func(r Revision) int {
		switch {
		case r.Number == h.Revisions[0].Number, r.Number == healthy[r.Paused]:
			return 0
		case r.Confirmed() && !r.complete():
			return 1
		case r.Confirmed():
			return 2
		}

		return 3
	}

	selected := slices.Clone(h.Revisions)
	slices.SortStableFunc(selected, func(a, b Revision) int { return cmp.Compare(rank(a), rank(b)) })
	selected = selected[:limit]
	slices.SortFunc(selected, func(a, b Revision) int { return cmp.Compare(b.Number, a.Number) })

	return selected
}

func (h History) first(match func(Revision) bool) (Revision, bool) {
	for _, r := range h.Revisions {
		if match(r) {
			return r, true
		}
	}

	return Revision{}, false
}

// Attempts returns the failed attempts to deploy the digest since something else was deployed or
// requested, newest first. It skips rollbacks between them, and revisions that were interrupted: these
// tell nothing about the digest.
func (h History) Attempts(digest string) []Revision {
	var attempts []Revision

	for _, r := range h.Revisions {
		switch {
		case r.RollbackTo != 0 && r.ContentDigest != digest:
			continue
		case r.Ours() && r.Failure == v1alpha2.FailureInterrupted:
			continue
		case len(attempts) > 0 && r.Request != attempts[0].Request:
			return attempts
		case r.Ours() && r.Status == v1alpha2.RevisionFailed && r.ContentDigest == digest:
			attempts = append(attempts, r)
		default:
			return attempts
		}
	}

	return attempts
}

// failedRollbacks returns the failed rollbacks at the end of the history, newest first.
func (h History) failedRollbacks() []Revision {
	for i, r := range h.Revisions {
		if r.RollbackTo == 0 || r.Status != v1alpha2.RevisionFailed {
			return h.Revisions[:i]
		}
	}

	return h.Revisions
}
