package storage

import (
	"fmt"
	"maps"
	"slices"

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

// isComplete reports whether all objects of a revision were applied.
func (s *Store) isComplete(revision int) bool {
	status := s.statuses[revision]
	applied := status == state.StatusDeployed || status == state.StatusSuperseded

	return applied && !s.placeholders[revision] && !s.known[revision].Staged
}

// Protect excludes a revision from the history limit.
func (s *Store) Protect(revision int) { s.protected[revision] = true }

// ProtectHealthy excludes the newest healthy revision from the history limit, because it is the target
// of a rollback. If that one is paused, the newest that is not is protected too.
func (s *Store) ProtectHealthy() {
	protected := false

	for _, rel := range s.newestFirst() {
		if !s.known[rel.Version].Healthy || !s.isComplete(rel.Version) {
			continue
		}

		paused := s.known[rel.Version].Paused
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

	failed := s.known[newest]
	failed.Status, failed.Failure = state.StatusFailed, failure

	if err := s.announce(rel, failed, nil); err != nil {
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
