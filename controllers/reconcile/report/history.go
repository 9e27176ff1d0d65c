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

// Known returns what the status knows of a revision, of all that changes after it was created. The digest is that of
// its record; empty if the record was not read. It returns false if the status does not have the digest of the
// revision: the status was lost, or another program has created the revision.
func Known(status *v1alpha2.ProviderStatus, number int, digest string) (state.Revision, bool) {
	announced := status.Announced
	if announced == nil || announced.Digest == "" || announced.Revision != int64(number) {
		announced = nil
	}

	before := entryIn(status.History, int64(number))

	// A revision that is written again begins again.
	if announced != nil && announced.Digest == digest {
		entry := entryOf(announced)

		// It may resume an attempt, which was created then.
		if before.Failure == string(state.FailureUnavailable) {
			entry.Time = before.Time
		}

		return known(entry), true
	}

	if before.Digest != "" {
		return known(before), true
	}

	if announced != nil {
		return known(entryOf(announced)), true
	}

	return state.Revision{}, false
}

// known returns what is known of the revision of an entry, beside its digest.
func known(entry v1alpha2.ReleaseRevision) state.Revision {
	revision := state.Revision{
		Status:       state.Status(entry.Status),
		Healthy:      ptr.Deref(entry.Healthy, false),
		Failure:      state.Failure(entry.Failure),
		FinishedJobs: slices.Clone(entry.FinishedJobs),
		Created:      entry.Time.Time,
		Changed:      entry.LastTransitionTime.Time,
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

	return revision
}

// enterKnown completes the entry of a revision that is known by the digest of its record.
func enterKnown(entry *v1alpha2.ReleaseRevision, digest string, revision state.Revision) {
	entry.Digest = digest
	entry.Healthy = new(revision.Healthy)
	entry.Time = metav1.NewTime(revision.Created)
	entry.LastTransitionTime = metav1.NewTime(revision.Changed)
	entry.Failure = string(revision.Failure)
	entry.FinishedJobs = slices.Clone(revision.FinishedJobs)
	entry.Wave = wave(revision.Staged, revision.Wave)
	entry.Request = request(revision.Request)
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

// entryOf returns the entry of a revision that was announced.
func entryOf(announced *v1alpha2.AnnouncedRevision) v1alpha2.ReleaseRevision {
	return v1alpha2.ReleaseRevision{
		Revision: announced.Revision, Digest: announced.Digest,
		Healthy: new(false), Wave: announced.Wave, Request: announced.Request,
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

// history returns what `helm history` shows, newest first. The digests of revisions are never taken from there: that
// of the newest one is entered once it is confirmed, the others were before.
func history(installed Installed, before []v1alpha2.ReleaseRevision) []v1alpha2.ReleaseRevision {
	digests := map[int64]string{}
	for _, entry := range before {
		digests[entry.Revision] = entry.Digest
	}

	if newest := installed.Revision; newest.Confirmed() && installed.Record.Readable {
		digests[int64(newest.Number)] = installed.Record.Digest
	}

	revisions := installed.History.Select(v1alpha2.HistoryMaxItems - announcedItems)
	entries := make([]v1alpha2.ReleaseRevision, 0, len(revisions))

	for _, revision := range revisions {
		entry := v1alpha2.ReleaseRevision{
			Revision:    int64(revision.Number),
			Version:     revision.Version,
			ChartDigest: revision.ChartDigest,
			Adopted:     int64(revision.Adopted),
			Status:      string(revision.Status),
			Time:        metav1.NewTime(revision.Created),
		}

		if digest := digests[entry.Revision]; digest != "" {
			enterKnown(&entry, digest, revision)
		}

		entries = append(entries, entry)
	}

	return entries
}
