package state

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Known returns what the status knows of a revision, with the digest of its record. It knows nothing of others: it was
// lost, or another program has created the revision.
func Known(status *v1alpha2.ProviderStatus, number int) (known v1alpha2.ReleaseRevision, exists bool) {
	entry := Entry(status, number)
	return entry, entry.Digest != ""
}

// Last returns the number of the newest revision that the status knows to exist; 0 for none.
func Last(status *v1alpha2.ProviderStatus) int {
	for _, entry := range status.History {
		// The record of one that is pending may not have been created.
		if entry.Digest != "" && !entry.Status.Pending() {
			return entry.Number
		}
	}

	return 0
}

// Entry returns the entry of a revision in the history of a status, with nothing but its number if it has none.
func Entry(status *v1alpha2.ProviderStatus, number int) v1alpha2.ReleaseRevision {
	for _, entry := range status.History {
		if entry.Number == number {
			return entry
		}
	}

	return v1alpha2.ReleaseRevision{Number: number}
}

// Enter writes into the history of a status what is about to be written of a revision of the release: that it is
// created, or how that has ended. A record whose resource does not know of it proves nothing.
func Enter(status *v1alpha2.ProviderStatus, revision Revision) {
	entry, before := revision.ReleaseRevision, Entry(status, revision.Number)
	begins := revision.Status.Pending()

	// Its record tells the time once that is written. An attempt that is resumed was created before.
	entry.Time, entry.LastTransitionTime = metav1.Time{}, metav1.Time{}
	if !begins || before.Failure == v1alpha2.FailureUnavailable {
		entry.Time = before.Time
	}

	// The records of revisions after the next one were deleted.
	if begins {
		status.History = slices.DeleteFunc(status.History, func(r v1alpha2.ReleaseRevision) bool {
			return r.Number > entry.Number
		})
	}

	setEntry(status, entry)
}

// Mark writes into the history of a status that something has changed of a revision. It does nothing if the status does
// not know the revision.
func Mark(status *v1alpha2.ProviderStatus, revision Revision) {
	if known, exists := Known(status, revision.Number); exists && known.Digest == revision.Digest {
		setEntry(status, revision.ReleaseRevision)
	}
}

// Adopt writes into the history of a status how many objects became part of the release with a revision.
func Adopt(status *v1alpha2.ProviderStatus, number, objects int) {
	if entry, exists := Known(status, number); exists {
		entry.Adopted = objects
		setEntry(status, entry)
	}
}

// Begin announces in a status a change to a version that is about to create a revision, so that other resources wait
// for it. The entry gets a digest before the revision is created, or else lasts until the reconcile ends.
func Begin(status *v1alpha2.ProviderStatus, first bool, number int, version string) {
	status.DesiredVersion = version

	// A record may exist, which only its digest confirms.
	entry := Entry(status, number)
	if entry.Digest != "" {
		return
	}

	entry.Version, entry.Status = version, v1alpha2.RevisionPendingUpgrade
	if first {
		entry.Status = v1alpha2.RevisionPendingInstall
	}

	setEntry(status, entry)
}

// setEntry writes an entry into the history of a status, in place of another one of the same revision.
func setEntry(status *v1alpha2.ProviderStatus, entry v1alpha2.ReleaseRevision) {
	history := slices.DeleteFunc(slices.Clone(status.History), func(r v1alpha2.ReleaseRevision) bool {
		return r.Number == entry.Number
	})
	history = append(history, entry)
	slices.SortFunc(history, func(a, b v1alpha2.ReleaseRevision) int { return cmp.Compare(b.Number, a.Number) })

	status.History = history[:min(len(history), v1alpha2.HistoryMaxItems)]
}

// Confirm completes each revision of a release by what the status knows of it, by the digest that the status has of
// what the operator has written. Helm's storage proves nothing. If a later revision than the newest one is known, its
// record was deleted: what is left is older than what runs. Records that are too far ahead are left out. ConfirmNewest
// completes the newest revision.
func (h History) Confirm(status *v1alpha2.ProviderStatus) History {
	h = h.Near(Last(status))

	for i := range h.Revisions {
		revision := &h.Revisions[i]
		known, exists := Known(status, revision.Number)

		switch {
		case i > 0 && exists && revision.Ours():
			revision.Recall(known)
		case i == 0 && exists && revision.Number >= Last(status):
			revision.Digest = known.Digest
		}
	}

	return h
}

// ConfirmNewest completes Confirm for the newest revision, whose record was read, with its digest and its owner. A
// record that names another cluster than that of self was restored from a backup, and does not count. One that was
// written while the cluster's UID could not be read names none.
func (h History) ConfirmNewest(status *v1alpha2.ProviderStatus, self Owner, digest string, owner Owner) {
	newest := &h.Revisions[0]
	copied := self.Cluster != "" && owner.Cluster != "" && owner.Cluster != self.Cluster

	if !newest.Confirms(digest) || copied {
		newest.Digest = ""
		return
	}

	known, _ := Known(status, newest.Number)
	newest.Recall(known)
}

// Show completes the revisions of a release for people: their records are not looked at, and nothing may be done by
// them.
func (h History) Show(status *v1alpha2.ProviderStatus) History {
	h = h.Near(Last(status))

	for i := range h.Revisions {
		revision := &h.Revisions[i]
		if known, exists := Known(status, revision.Number); exists && revision.Ours() {
			revision.Recall(known)
		}
	}

	return h
}
