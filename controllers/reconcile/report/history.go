package report

import (
	"cmp"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Known returns what the status knows of a revision, with the digest of its record. It knows nothing of others: it was
// lost, or another program has created the revision.
func Known(status *v1alpha2.ProviderStatus, number int) (known v1alpha2.ReleaseRevision, exists bool) {
	entry := entryIn(status.History, number)
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

// entryIn returns the entry of a revision in a history, with nothing but its number if it has none.
func entryIn(history []v1alpha2.ReleaseRevision, number int) v1alpha2.ReleaseRevision {
	for _, entry := range history {
		if entry.Number == number {
			return entry
		}
	}

	return v1alpha2.ReleaseRevision{Number: number}
}

// announcedItems is how many entries enter may add to a history before it is written again: a reconcile creates hardly
// more revisions than an upgrade and the rollback that follows.
const announcedItems = 5

// enter returns a copy of a history with the entry, in place of another one of the same revision.
func enter(history []v1alpha2.ReleaseRevision, entry v1alpha2.ReleaseRevision) []v1alpha2.ReleaseRevision {
	history = append(without(history, entry.Number), entry)
	slices.SortFunc(history, func(a, b v1alpha2.ReleaseRevision) int { return cmp.Compare(b.Number, a.Number) })

	return history[:min(len(history), v1alpha2.HistoryMaxItems)]
}

// without returns a copy of a history without the entry of a revision.
func without(history []v1alpha2.ReleaseRevision, number int) []v1alpha2.ReleaseRevision {
	return slices.DeleteFunc(slices.Clone(history), func(r v1alpha2.ReleaseRevision) bool { return r.Number == number })
}

// history returns what `helm history` shows, newest first, after a revision that was entered and may not exist. The
// digests of revisions are never taken from storage: that of the newest one is entered once it is confirmed, the others
// were before.
func history(installed Installed, before []v1alpha2.ReleaseRevision) []v1alpha2.ReleaseRevision {
	revisions := installed.History.Select(v1alpha2.HistoryMaxItems - announcedItems)
	entries := make([]v1alpha2.ReleaseRevision, 0, len(revisions)+1)

	for _, entry := range before {
		if entry.Status.Pending() && (len(revisions) == 0 || entry.Number > revisions[0].Number) {
			entries = append(entries, entry)
		}
	}

	for i, revision := range revisions {
		entered := entryIn(before, revision.Number)
		read := i > 0 || installed.Record.Readable

		switch {
		case revision.Confirmed() && read:
			entries = append(entries, revision.ReleaseRevision)
		case i == 0 && entered.Digest != "":
			entries = append(entries, entered)
		default:
			entries = append(entries, v1alpha2.ReleaseRevision{
				Number: revision.Number, Status: revision.Status, Time: revision.Time,
			})
		}
	}

	return entries
}
