package report

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Known returns what the status knows of a revision, and the digest of its record. There is none for others: the status
// was lost, or another program has created the revision.
func Known(status *v1alpha2.ProviderStatus, number int) (known state.Revision, digest string) {
	entry := entryIn(status.History, int64(number))
	if entry.Digest == "" {
		return state.Revision{}, ""
	}

	return revisionOf(entry), entry.Digest
}

// Last returns the number of the newest revision that the status knows to exist; 0 for none.
func Last(status *v1alpha2.ProviderStatus) int {
	for _, entry := range status.History {
		if entry.Digest != "" && !isPending(entry) {
			return int(entry.Revision)
		}
	}

	return 0
}

// isPending reports whether the record of a revision may not have been created.
func isPending(entry v1alpha2.ReleaseRevision) bool { return state.Status(entry.Status).Pending() }

// revisionOf returns the revision of an entry.
func revisionOf(entry v1alpha2.ReleaseRevision) state.Revision {
	revision := state.Revision{
		Number:         int(entry.Revision),
		Status:         state.Status(entry.Status),
		Digest:         entry.ContentDigest,
		Version:        entry.Version,
		ChartDigest:    entry.ChartDigest,
		Healthy:        ptr.Deref(entry.Healthy, false),
		Paused:         entry.Paused,
		FinishedJobs:   slices.Clone(entry.FinishedJobs),
		RollbackTo:     int(entry.RollbackTo),
		Adopted:        int(entry.Adopted),
		AdoptedVersion: entry.AdoptedVersion,
		Failure:        state.Failure(entry.Failure),
		Created:        entry.Time.Time,
		Changed:        entry.LastTransitionTime.Time,
	}

	if entry.Wave != nil {
		revision.Staged, revision.Wave = true, int(*entry.Wave)
	}

	if request := entry.Request; request != nil {
		revision.Request = state.Request{
			UID: types.UID(request.UID), Generation: request.Generation, RequestedAt: request.RequestedAt,
			Automatic: request.AutomaticUpgrade,
		}
	}

	if inputs := entry.Inputs; inputs != nil {
		revision.Basis = state.Basis(*inputs)
	}

	return revision
}

// entryOf returns the entry of a revision whose record has the digest.
func entryOf(revision state.Revision, digest string) v1alpha2.ReleaseRevision {
	entry := v1alpha2.ReleaseRevision{
		Revision:           int64(revision.Number),
		Version:            revision.Version,
		ChartDigest:        revision.ChartDigest,
		Digest:             digest,
		Status:             string(revision.Status),
		Healthy:            new(revision.Healthy),
		Failure:            string(revision.Failure),
		Wave:               wave(revision.Staged, revision.Wave),
		LastTransitionTime: metav1.NewTime(revision.Changed),
		FinishedJobs:       slices.Clone(revision.FinishedJobs),
		Request:            request(revision.Request),
		Adopted:            int64(revision.Adopted),
		AdoptedVersion:     revision.AdoptedVersion,
		ContentDigest:      revision.Digest,
		RollbackTo:         int64(revision.RollbackTo),
		Paused:             revision.Paused,
		Time:               metav1.NewTime(revision.Created),
	}

	if revision.Basis != (state.Basis{}) {
		entry.Inputs = new(v1alpha2.RevisionInputs(revision.Basis))
	}

	return entry
}

func wave(staged bool, last int) *int32 {
	if !staged {
		return nil
	}

	return new(int32(last))
}

func request(r state.Request) *v1alpha2.RevisionRequest {
	if r == (state.Request{}) {
		return nil
	}

	return &v1alpha2.RevisionRequest{
		UID: string(r.UID), Generation: r.Generation, RequestedAt: r.RequestedAt, AutomaticUpgrade: r.Automatic,
	}
}

// entryIn returns the entry of a revision in a history, with nothing but its number if it has none.
func entryIn(history []v1alpha2.ReleaseRevision, revision int64) v1alpha2.ReleaseRevision {
	for _, entry := range history {
		if entry.Revision == revision {
			return entry
		}
	}

	return v1alpha2.ReleaseRevision{Revision: revision}
}

// announcedItems is how many entries enter may add to a history before it is written again: a reconcile creates hardly
// more revisions than an upgrade and the rollback that follows.
const announcedItems = 5

// enter returns a copy of a history with the entry, in place of another one of the same revision.
func enter(history []v1alpha2.ReleaseRevision, entry v1alpha2.ReleaseRevision) []v1alpha2.ReleaseRevision {
	history = append(without(history, entry.Revision), entry)
	slices.SortFunc(history, func(a, b v1alpha2.ReleaseRevision) int { return cmp.Compare(b.Revision, a.Revision) })

	return history[:min(len(history), v1alpha2.HistoryMaxItems)]
}

// without returns a copy of a history without the entry of a revision.
func without(history []v1alpha2.ReleaseRevision, revision int64) []v1alpha2.ReleaseRevision {
	return slices.DeleteFunc(slices.Clone(history), func(r v1alpha2.ReleaseRevision) bool {
		return r.Revision == revision
	})
}

// history returns what `helm history` shows, newest first, after a revision that was entered and may not exist. The
// digests of revisions are never taken from storage: that of the newest one is entered once it is confirmed, the others
// were before.
func history(installed Installed, before []v1alpha2.ReleaseRevision) []v1alpha2.ReleaseRevision {
	revisions := installed.History.Select(v1alpha2.HistoryMaxItems - announcedItems)
	entries := make([]v1alpha2.ReleaseRevision, 0, len(revisions)+1)

	for _, entry := range before {
		if isPending(entry) && (len(revisions) == 0 || entry.Revision > int64(revisions[0].Number)) {
			entries = append(entries, entry)
		}
	}

	for i, revision := range revisions {
		entered := entryIn(before, int64(revision.Number))

		switch {
		case i == 0 && revision.Confirmed() && installed.Record.Digest != "":
			entries = append(entries, entryOf(revision, installed.Record.Digest))
		case i == 0 && entered.Digest != "":
			entries = append(entries, entered)
		case revision.Confirmed() && entered.Digest != "":
			entries = append(entries, entryOf(revision, entered.Digest))
		default:
			entries = append(entries, v1alpha2.ReleaseRevision{
				Revision: int64(revision.Number), Status: string(revision.Status), Time: metav1.NewTime(revision.Created),
			})
		}
	}

	return entries
}
