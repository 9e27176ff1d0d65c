package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// CheckSize returns an *Error if the record of a revision would be too large to be created.
func (s *Store) CheckSize(rel *helm.Release) error {
	document, err := json.Marshal(withoutFiles(rel))
	if err != nil || len(document) < helm.MaxRecord/2 { // it becomes a third larger at most
		return err
	}

	record, err := pack(document)
	if err != nil {
		return err
	}

	if err := checkSize(record); err != nil {
		return NewError(s.release.Namespace+"/"+helm.RecordName(rel.Name, rel.Version), err)
	}

	return nil
}

// announce announces what is about to be written of a revision: its record alone proves nothing.
func (s *Store) announce(
	ctx context.Context, rel *helm.Release, revision state.Revision, inventory []object.Key,
) error {
	if s.memory.Announce == nil {
		return nil
	}

	digest, err := Digest(rel)
	if err != nil {
		return err
	}

	revision.Digest = digest

	if err := s.memory.Announce(ctx, revision, inventory); err != nil {
		return fmt.Errorf("announce revision %d of release %s: %w", rel.Version, s.release, err)
	}

	return nil
}

// Supersede marks all revisions superseded that are deployed, but the given one.
func (s *Store) Supersede(by int) error {
	for _, number := range s.newestFirst() {
		if number == by || s.statuses[number] != v1alpha2.RevisionDeployed {
			continue
		}

		rel, err := s.Find(number)
		if err != nil {
			return err
		}

		if rel == nil {
			continue
		}

		rel.Info.Status = helm.StatusSuperseded
		if err := s.Record(rel); err != nil {
			return err
		}
	}

	return nil
}

// Replace marks the newest revision superseded if it was uninstalled, as Helm does before a new installation.
func (s *Store) Replace() error {
	newest, status := s.Newest()

	if status != v1alpha2.RevisionUninstalled {
		return nil
	}

	rel, err := s.Find(newest)
	if err != nil || rel == nil {
		return err
	}

	rel.SetStatus(helm.StatusSuperseded, "superseded by new release")

	return s.Record(rel)
}

// Outcome is how an action has ended.
type Outcome struct {
	// Failure of the action; empty if it has succeeded.
	Failure v1alpha2.RevisionFailure
	// Description for Helm's history.
	Description string
	// Adopted is how many objects of the revision existed before and belonged to no release.
	Adopted int
}

// End records how the action has ended that has created a revision. Revisions that were deployed before are superseded
// first: a process that is killed in between leaves none deployed, and a pending one that tells it. If another program
// has made a later revision meanwhile, the action was interrupted, and the error wraps ErrChanged.
func (s *Store) End(ctx context.Context, rel *helm.Release, created state.Revision, outcome Outcome) error {
	within, cancel := consistency.Outcome(ctx)
	defer cancel()

	overtaken, err := s.secrets.isRecord(within, s.release.Name, rel.Version+1)
	if err != nil && !apierrors.IsNotFound(err) {
		return s.wrote(rel, err)
	}

	if overtaken {
		outcome.Failure = v1alpha2.FailureInterrupted
		outcome.Description = fmt.Sprintf("another program made revision %d at the same time", rel.Version+1)
	}

	rel.SetStatus(helm.StatusDeployed, object.OneLine(outcome.Description, maxDescription))

	if outcome.Adopted > 0 {
		rel.Info.Description += "; adopted " + object.Count(outcome.Adopted, "existing object")
	}

	// What follows from success is found out again; what follows from this is not.
	if outcome.Failure != "" {
		rel.Info.Status = helm.StatusFailed

		failed := created
		failed.Status, failed.Failure, failed.Adopted = v1alpha2.RevisionFailed, outcome.Failure, outcome.Adopted

		if err := s.announce(ctx, rel, failed, nil); err != nil {
			return err
		}
	}

	if err := s.Record(rel); err != nil || !overtaken {
		return err
	}

	return fmt.Errorf("%w: %s", ErrChanged, outcome.Description)
}

// Limit deletes the oldest revisions, so that there are no more than the limit with the one that the action creates. It
// keeps the newest one, deployed ones, those that may be rolled back to, and some others.
func (s *Store) Limit(limit int, others ...int) error {
	var errs []error

	newest, _ := s.Newest()
	kept := slices.Concat(s.healthy(), others, []int{newest})

	for _, number := range s.Numbers() {
		if len(s.statuses) < limit {
			break
		}

		if !slices.Contains(kept, number) && s.statuses[number] != v1alpha2.RevisionDeployed {
			errs = append(errs, s.Delete(number))
		}
	}

	return errors.Join(errs...)
}

// Purge deletes all revisions, the oldest first: the newest tells how far an uninstall has come.
func (s *Store) Purge() error {
	for _, number := range s.Numbers() {
		if err := s.Delete(number); err != nil {
			return err
		}
	}

	return nil
}

// Delete deletes the record of a revision.
func (s *Store) Delete(number int) error {
	ctx, cancel := consistency.Outcome(context.Background())
	defer cancel()

	secret := helm.RecordName(s.release.Name, number)

	err := s.secrets.Delete(ctx, secret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return s.failed(secret, err)
	}

	delete(s.statuses, number)
	delete(s.stored, number)

	return nil
}

// Record writes what has changed of a revision that is stored.
func (s *Store) Record(rel *helm.Release) error {
	ctx, cancel := consistency.Outcome(context.Background())
	defer cancel()

	return s.wrote(rel, s.secrets.update(ctx, withoutFiles(rel)))
}

// wrote notes that a revision was written, unless that has failed.
func (s *Store) wrote(rel *helm.Release, err error) error {
	if err != nil {
		return s.failed(helm.RecordName(s.release.Name, rel.Version), err)
	}

	s.decoded[rel.Version] = rel
	s.statuses[rel.Version] = v1alpha2.RevisionStatus(rel.Info.Status)
	s.stored[rel.Version] = s.statuses[rel.Version]
	s.written = append(s.written, rel.Version)

	return nil
}

// failed returns the error of a write.
func (s *Store) failed(secret string, err error) error {
	s.uncertain = true

	if apierrors.IsConflict(err) {
		err = fmt.Errorf("%w: another process has written the record since", ErrChanged)
	}

	return NewError(s.release.Namespace+"/"+secret, err)
}

// withoutFiles returns a copy of the revision whose chart has no templates and files.
func withoutFiles(rel *helm.Release) *helm.Release {
	stored := *rel
	if c := rel.Chart; c != nil {
		stored.Chart = &helm.Chart{Metadata: c.Metadata, Lock: c.Lock, Values: c.Values, Schema: c.Schema}
	}

	return &stored
}
