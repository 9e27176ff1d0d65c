package storage

import (
	"fmt"
	"maps"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Newest returns the number of the newest revision and its status in storage; zero if there is
// none.
func (s *Store) Newest() (int, state.Status) {
	if len(s.revisions) == 0 {
		return 0, ""
	}

	newest := slices.Max(slices.Collect(maps.Keys(s.revisions)))

	return newest, s.statuses[newest]
}

// Find returns a revision that can be decoded, or nil.
func (s *Store) Find(revision int) *helm.Release {
	if s.placeholders[revision] {
		return nil
	}

	return s.revisions[revision]
}

// Readable returns the numbers of the revisions that can be decoded, oldest first.
func (s *Store) Readable() []int {
	numbers := slices.Sorted(maps.Keys(s.revisions))
	return slices.DeleteFunc(numbers, func(n int) bool { return s.placeholders[n] })
}

// Inherit sets what a revision takes over from those before it, as an upgrade by Helm does: when the release was first
// deployed, and labels of others.
func (s *Store) Inherit(rel *helm.Release) {
	for i, older := range s.newestFirst() {
		if i == 0 {
			rel.Labels = maps.Clone(older.Labels)
		}

		if !older.Info.FirstDeployed.IsZero() {
			rel.Info.FirstDeployed = older.Info.FirstDeployed
			return
		}
	}
}

// Copy returns the next revision as a rollback by Helm copies it from an earlier one, without hooks, which are not run.
func (s *Store) Copy(from *helm.Release) *helm.Release {
	rel := &helm.Release{
		Name:      s.release.Name,
		Namespace: s.release.Namespace,
		Version:   s.NextRevision(),
		Chart:     from.Chart,
		Config:    from.Config,
		Info:      &helm.Info{Notes: from.Info.Notes},
	}

	s.Inherit(rel)
	rel.Labels = maps.Clone(from.Labels)

	return rel
}

// LabelsOf returns the labels of a revision, as far as they describe what it was created from. Only
// the version is known if another program created it.
func LabelsOf(rel *helm.Release) Labels {
	labels := Labels{}

	if rel.Chart != nil && rel.Chart.Metadata != nil {
		labels.Version = rel.Chart.Metadata.AppVersion
	}

	if isOwn(rel.Labels, rel.Version) {
		labels.Digest = rel.Labels[v1alpha2.DigestLabel]
		labels.ChartDigest = decodeDigest(rel.Labels[ChartDigestLabel])
		labels.Basis = basisOf(rel.Labels)
	}

	return labels
}

// CurrentManifests returns the manifests of the newest revisions that were not applied completely, or have
// left objects to be deleted, down to and including the last one that was, newest first. Together they have
// all objects that may exist. Anyone who may write Secrets can add records, so nothing is created or changed by these.
func (s *Store) CurrentManifests() []string { return manifestsOf(s.current()) }

// KnownManifests returns CurrentManifests as if there were only the records that are confirmed.
func (s *Store) KnownManifests() []string {
	known, _ := s.untilComplete(s.isConfirmed)
	return manifestsOf(known)
}

// current returns the revisions whose objects may exist, newest first.
func (s *Store) current() []*helm.Release {
	all, _ := s.untilComplete(func(*helm.Release) bool { return true })
	return all
}

// MissesRecords reports whether there may be objects of revisions that have no record, or one that cannot be decoded.
func (s *Store) MissesRecords() bool {
	_, gaps := s.untilComplete(func(rel *helm.Release) bool { return !s.placeholders[rel.Version] })
	return gaps
}

// MissesKnown is MissesRecords as if there were only the records that are confirmed.
func (s *Store) MissesKnown() bool {
	_, gaps := s.untilComplete(s.isConfirmed)
	return gaps
}

// untilComplete returns the revisions that count, down to the newest that is complete, newest first. gaps is set if
// revisions between them do not count or have no record, or if an older record told so.
func (s *Store) untilComplete(counts func(*helm.Release) bool) (revisions []*helm.Release, gaps bool) {
	next := s.NextRevision() - 1

	for _, rel := range s.newestFirst() {
		counted := counts(rel)
		gaps = gaps || !counted || rel.Version != next || rel.Labels[UnprunedLabel] == "true"
		next = rel.Version - 1

		if !counted {
			continue
		}

		revisions = append(revisions, rel)

		if s.isComplete(rel.Version) {
			return revisions, gaps
		}
	}

	return revisions, gaps || next > 0
}

// isConfirmed reports whether the record of a revision is known to be the resource's.
func (s *Store) isConfirmed(rel *helm.Release) bool {
	if s.placeholders[rel.Version] {
		return false
	}

	digest, err := Digest(rel, rel.Labels)

	return err == nil && slices.ContainsFunc(s.confirmed, func(known state.Confirmed) bool {
		return known.Number() == rel.Version && known.Confirms(digest)
	})
}

func manifestsOf(revisions []*helm.Release) []string {
	manifests := make([]string, 0, len(revisions))
	for _, rel := range revisions {
		manifests = append(manifests, rel.Manifest)
	}

	return manifests
}

// IncompleteManifests returns KnownManifests if there is more than one. It returns nil if all is complete.
func (s *Store) IncompleteManifests() []string {
	manifests := s.KnownManifests()
	if len(manifests) < 2 {
		return nil
	}

	return manifests
}

// isComplete reports whether all objects of a revision were applied, and all that it no longer has deleted.
func (s *Store) isComplete(revision int) bool {
	status := s.statuses[revision]
	applied := status == state.StatusDeployed || status == state.StatusSuperseded

	return applied && !s.placeholders[revision] && !s.marks[revision].Staged && !s.marks[revision].Unpruned
}

// Protect excludes a revision from the history limit.
func (s *Store) Protect(revision int) { s.protected[revision] = true }

// ProtectHealthy excludes the newest healthy revision from the history limit, because it is the target
// of a rollback. If that one is paused, the newest that is not is protected too.
func (s *Store) ProtectHealthy() {
	protected := false

	for _, rel := range s.newestFirst() {
		if !s.marks[rel.Version].Healthy || !s.isComplete(rel.Version) {
			continue
		}

		paused := s.marks[rel.Version].Paused
		if !paused || !protected {
			s.Protect(rel.Version)
		}

		if !paused {
			return
		}

		protected = true
	}
}

// FailInterrupted marks the newest revision failed if its action was interrupted. Helm refuses to
// upgrade or roll back otherwise. The caller has made sure that no program still works on it.
func (s *Store) FailInterrupted(reason string) error {
	newest, status := s.Newest()

	switch status {
	case state.StatusDeployed, state.StatusSuperseded, state.StatusFailed:
		return nil
	}

	rel := s.Find(newest)
	if rel == nil {
		return nil
	}

	rel.SetStatus(helm.StatusFailed, "Interrupted: "+reason)

	if isOwn(rel.Labels, newest) {
		rel.Labels[FailureLabel] = string(state.FailureInterrupted)
	}

	return s.Record(rel)
}

// FailNewest marks the newest revision failed for the given reason. It returns ErrChanged if
// Capstan did not create that revision.
func (s *Store) FailNewest(failure state.Failure, reason string) error {
	newest, _ := s.Newest()

	rel := s.Find(newest)
	if rel == nil || !isOwn(rel.Labels, newest) {
		return fmt.Errorf("revision %d of release %s: %w", newest, s.release, ErrChanged)
	}

	rel.SetStatus(helm.StatusFailed, object.OneLine(reason, maxDescription))
	rel.Labels[FailureLabel] = string(failure)

	if err := s.announce(rel, state.Announcement{Failure: failure}); err != nil {
		return err
	}

	return s.Record(rel)
}

// LastWritten returns the newest revision that was written, and its status; zero if none was.
func (s *Store) LastWritten() (int, state.Status) {
	if len(s.written) == 0 {
		return 0, ""
	}

	newest := slices.Max(s.written)

	return newest, s.statuses[newest]
}
