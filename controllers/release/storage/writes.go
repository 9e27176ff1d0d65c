package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// NextRevision returns the number of the revision that the action creates, or resumes.
func (s *Store) NextRevision() int {
	if s.resumed != nil {
		return s.resumed.Version
	}

	newest, _ := s.Newest()

	return max(newest, s.last) + 1
}

// maxTaken is how many numbers in a row may be taken by Secrets that are no records.
const maxTaken = 10

// Create records a new revision, with Capstan's label beside those of others. Only one program can create the record of
// a number, which is the lock of the release. If another Secret has its name, the revision gets the next number.
func (s *Store) Create(rel *helm.Release) error {
	for taken := 0; ; taken++ {
		err := s.createNext(rel)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}

		isRecord, readErr := s.secrets.isRecord(context.Background(), s.release.Name, rel.Version)

		switch {
		case readErr != nil:
			return s.wrote(rel, readErr)
		case isRecord, taken == maxTaken:
			return s.wrote(rel, fmt.Errorf("%w: the Secret exists", ErrChanged))
		}

		rel.Version++
	}
}

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

// createNext is Create with the number that the revision has.
func (s *Store) createNext(rel *helm.Release) error {
	rel.Labels = labelsFor(rel.Version, rel.Labels)
	rel.Info.Description = object.OneLine(rel.Info.Description, maxDescription)
	sign(rel, cmp.Or(s.new.Salt, SaltOf(s.resumed), NewSalt()), s.new.Owner)

	s.created = s.new.Revision
	s.created.Number, s.created.Origin = rel.Version, rel.Version
	s.created.Status = v1alpha2.RevisionStatus(rel.Info.Status)

	if err := s.announce(rel, s.created, s.new.Inventory); err != nil {
		return err
	}

	if s.resumed != nil {
		return s.Record(rel)
	}

	ctx, cancel := consistency.Outcome(context.Background())
	defer cancel()

	err := s.secrets.create(ctx, withoutFiles(rel))
	if apierrors.IsAlreadyExists(err) {
		return err
	}

	return s.wrote(rel, err)
}

// announce announces what is about to be written of a revision: its record alone proves nothing.
func (s *Store) announce(rel *helm.Release, revision state.Revision, inventory []object.Key) error {
	if s.new.Announce == nil {
		return nil
	}

	digest, err := Digest(rel)
	if err != nil {
		return err
	}

	revision.Digest = digest

	if err := s.new.Announce(revision, inventory); err != nil {
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

// End records how the action has ended that has created a revision. Revisions that were deployed before are superseded
// first: a process that is killed in between leaves none deployed, and a pending one that tells it. If another program
// has made a later revision meanwhile, the action was interrupted, and the error wraps ErrChanged.
func (s *Store) End(rel *helm.Release, outcome Outcome) error {
	ctx, cancel := consistency.Outcome(context.Background())
	defer cancel()

	overtaken, err := s.secrets.isRecord(ctx, s.release.Name, rel.Version+1)
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

		failed := s.created
		failed.Status, failed.Failure, failed.Adopted = v1alpha2.RevisionFailed, outcome.Failure, outcome.Adopted

		if err := s.announce(rel, failed, nil); err != nil {
			return err
		}
	}

	if err := s.Record(rel); err != nil || !overtaken {
		return err
	}

	return fmt.Errorf("%w: %s", ErrChanged, outcome.Description)
}

// Limit deletes the oldest revisions, so that there are no more than the limit with the one that the action creates. It
// keeps the newest one, and protected and deployed ones.
func (s *Store) Limit(limit int) error {
	var errs []error

	newest, _ := s.Newest()

	for _, number := range s.Numbers() {
		if len(s.statuses) < limit {
			break
		}

		if number != newest && !s.protected[number] && s.statuses[number] != v1alpha2.RevisionDeployed {
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
