package storage

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1api "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Newest returns the number of the newest revision and its status, as far as that is known or else as stored; zero if
// there is none.
func (s *Store) Newest() (int, v1alpha2.RevisionStatus) {
	numbers := s.newestFirst()
	if len(numbers) == 0 {
		return 0, ""
	}

	return numbers[0], s.statuses[numbers[0]]
}

// Shows reports whether the newest revision is in storage as it was observed. Whether it has the same content, its
// digest tells.
func (s *Store) Shows(observed state.Revision) bool {
	newest, _ := s.Newest()
	return newest == observed.Number && s.stored[newest] == observed.Stored
}

// Find returns a revision; nil if there is none, or if it cannot be decoded.
func (s *Store) Find(revision int) (*helm.Release, error) {
	if _, exists := s.statuses[revision]; !exists {
		return nil, nil
	}

	if rel, read := s.decoded[revision]; read {
		return rel, nil
	}

	name := helm.RecordName(s.release.Name, revision)

	secret, err := s.secrets.get(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("read revision %d of release %s: %w", revision, s.release, err)
	}

	rel, err := Decode(secret, s.release.Name, revision)
	if err != nil {
		rel = nil // it stays as it is
	} else {
		rel.Labels = customLabels(secret.Labels)
	}

	s.decoded[revision] = rel

	return rel, nil
}

// Numbers returns the numbers of the revisions, oldest first.
func (s *Store) Numbers() []int { return slices.Sorted(maps.Keys(s.statuses)) }

// maxInherited is how many revisions Inherit reads at most.
const maxInherited = 3

// Inherit sets what a revision takes over from those before it, as an upgrade by Helm does: when the release was first
// deployed, and labels of others.
func (s *Store) Inherit(rel *helm.Release) error {
	for _, number := range s.newestFirst()[:min(maxInherited, len(s.statuses))] {
		older, err := s.Find(number)
		if err != nil {
			return err
		}

		if older == nil {
			continue
		}

		if rel.Labels == nil {
			rel.Labels = maps.Clone(older.Labels)
		}

		if !older.Info.FirstDeployed.IsZero() {
			rel.Info.FirstDeployed = older.Info.FirstDeployed
			return nil
		}
	}

	return nil
}

// Copy returns a revision with a number as a rollback by Helm copies it from an earlier one, without hooks, which are
// not run.
func (s *Store) Copy(from *helm.Release, number int) (*helm.Release, error) {
	rel := &helm.Release{
		Name:      s.release.Name,
		Namespace: s.release.Namespace,
		Version:   number,
		Chart:     from.Chart,
		Config:    from.Config,
		Info:      &helm.Info{Notes: from.Info.Notes},
	}

	err := s.Inherit(rel)
	rel.Labels = maps.Clone(from.Labels)

	return rel, err
}

// isComplete reports whether all objects of a revision were applied.
func (s *Store) isComplete(revision int) bool {
	return s.statuses[revision].Applied() && !s.memory.Of(revision).Staged()
}

// healthy returns the newest healthy revision, because it is the target of a rollback. If that one is paused, it
// returns the newest that is not, too.
func (s *Store) healthy() []int {
	var found []int

	for _, number := range s.newestFirst() {
		known := s.memory.Of(number)
		if !known.Healthy || !s.isComplete(number) || known.Paused && len(found) > 0 {
			continue
		}

		found = append(found, number)

		if !known.Paused {
			break
		}
	}

	return found
}

// Settle makes the record of the newest revision say how its action has ended: the write that would have said so was
// lost, or the action was interrupted for the given reason. Helm refuses to upgrade or roll back otherwise. The caller
// has made sure that no program still works on it.
func (s *Store) Settle(reason string) error {
	newest, status := s.Newest()
	ended := status.Applied() || status == v1alpha2.RevisionFailed

	if ended && status == s.stored[newest] {
		return nil
	}

	rel, err := s.Find(newest)
	if err != nil || rel == nil {
		return err
	}

	switch {
	case !ended:
		rel.SetStatus(helm.StatusFailed, "Interrupted: "+reason)
	case status == v1alpha2.RevisionFailed:
		rel.SetStatus(helm.StatusFailed, "Failed: "+lostReason(s.memory.Of(newest).Failure))
	default:
		rel.SetStatus(helm.Status(status), "Complete: the rest of its record was lost")
	}

	return s.Record(rel)
}

// lostReason describes a failure of which nothing else is known any more: its reason is in the record, and the write of
// that was lost.
func lostReason(failure v1alpha2.RevisionFailure) string {
	switch failure {
	case v1alpha2.FailureUnavailable:
		return "the API server, or a webhook, did not answer or refused a request for a passing reason"
	case v1alpha2.FailureUnhealthy:
		return "its objects did not become healthy in time"
	case v1alpha2.FailureFinal:
		return "one of its objects cannot become healthy"
	case v1alpha2.FailureRejected:
		return "the API server refused an object"
	}

	return "the action was interrupted"
}

// FailNewest marks the newest revision failed for the given reason. It returns ErrChanged if
// Capstan did not create that revision.
func (s *Store) FailNewest(ctx context.Context, failure v1alpha2.RevisionFailure, reason string) error {
	newest, _ := s.Newest()

	rel, err := s.Find(newest)
	if err != nil {
		return err
	}

	if rel == nil || !isOwn(rel.Labels, newest) {
		return fmt.Errorf("revision %d of release %s: %w", newest, s.release, ErrChanged)
	}

	rel.SetStatus(helm.StatusFailed, object.OneLine(reason, maxDescription))

	failed := s.memory.Of(newest)
	failed.Status, failed.Failure = v1alpha2.RevisionFailed, failure

	if err := s.announce(ctx, rel, failed, nil); err != nil {
		return err
	}

	return s.Record(rel)
}

// LastWritten returns the newest revision that was written, and its status; zero if none was.
func (s *Store) LastWritten() (int, v1alpha2.RevisionStatus) {
	if len(s.written) == 0 {
		return 0, ""
	}

	newest := slices.Max(s.written)

	return newest, s.statuses[newest]
}

// Written returns the Secret of a revision if it is what was written last; nil otherwise. It has the new resource
// version.
func (s *Store) Written(number int) *corev1api.Secret {
	if last := s.secrets.written; last != nil && last.Name == helm.RecordName(s.release.Name, number) {
		return last
	}

	return nil
}
