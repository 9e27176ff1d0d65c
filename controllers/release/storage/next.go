package storage

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Next is the revision that an action creates, or that it resumes.
type Next struct {
	// Number of the revision, unless another Secret has its name.
	Number int

	store    *Store
	revision state.Revision
	resumed  *helm.Release // as it is stored; nil for a new one
	salt     string
}

// Start is what is known of a revision when it is created.
type Start struct {
	// Wave that is applied first; nil if that completes the revision.
	Wave *int
	// AdoptedVersion is the version that another program has installed. If the action resumes a revision, the first
	// attempt may have changed that already: what was known then stays.
	AdoptedVersion string
	// Inventory are the objects that the release may have from then on.
	Inventory []object.Key
}

// Next returns the revision that an action creates from what is known of it, without a number and a status. The salt is
// that of the digests of the release; empty for that of the revision that is resumed, or a new one.
//
// If the newest revision is an attempt at the same that failed for a passing reason, or that this process has begun and
// could not record the end of, the action resumes it: it writes that revision again, so that the history does not fill
// with attempts that tell nothing.
func (s *Store) Next(revision state.Revision, salt string, begun int) (*Next, error) {
	newest, status := s.Newest()
	next := &Next{Number: max(newest, s.memory.Last) + 1, store: s, revision: revision, salt: salt}
	known := s.memory.Of(newest)

	passing := status == v1alpha2.RevisionFailed && known.Failure == v1alpha2.FailureUnavailable ||
		status.Pending() && newest == begun

	if !passing || known.ContentDigest != revision.ContentDigest || known.RollbackTo != revision.RollbackTo {
		return next, nil
	}

	rel, err := s.Find(newest)
	if err != nil || rel == nil || !isOwn(rel.Labels, newest) {
		return next, err
	}

	delete(s.statuses, newest)

	next.Number, next.resumed = newest, rel
	next.revision.AdoptedVersion = known.AdoptedVersion

	return next, nil
}

// maxTaken is how many numbers in a row may be taken by Secrets that are no records.
const maxTaken = 10

// Create records the revision, with Capstan's label beside those of others, and returns what is known of it. Only one
// program can create the record of a number, which is the lock of the release. If another Secret has its name, the
// revision gets the next number.
func (n *Next) Create(ctx context.Context, rel *helm.Release, start Start) (state.Revision, error) {
	for taken := 0; ; taken++ {
		created, err := n.create(ctx, rel, start)
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}

		isRecord, readErr := n.store.secrets.isRecord(context.WithoutCancel(ctx), n.store.release.Name, rel.Version)

		switch {
		case readErr != nil:
			return created, n.store.wrote(rel, readErr)
		case isRecord, taken == maxTaken:
			return created, n.store.wrote(rel, fmt.Errorf("%w: the Secret exists", ErrChanged))
		}

		rel.Version++
	}
}

// create is Create with the number that the record has.
func (n *Next) create(ctx context.Context, rel *helm.Release, start Start) (state.Revision, error) {
	s := n.store

	rel.Labels = labelsFor(rel.Version, rel.Labels)
	rel.Info.Description = object.OneLine(rel.Info.Description, maxDescription)
	sign(rel, cmp.Or(n.salt, SaltOf(n.resumed), NewSalt()), s.memory.Owner)

	created := n.revision
	created.Number, created.Origin = rel.Version, rel.Version
	created.Status = v1alpha2.RevisionStatus(rel.Info.Status)
	created.Wave = start.Wave
	created.AdoptedVersion = cmp.Or(created.AdoptedVersion, start.AdoptedVersion)

	if err := s.announce(ctx, rel, created, start.Inventory); err != nil {
		return created, err
	}

	if n.resumed != nil {
		return created, s.Record(rel)
	}

	within, cancel := consistency.Outcome(ctx)
	defer cancel()

	err := s.secrets.create(within, withoutFiles(rel))
	if apierrors.IsAlreadyExists(err) {
		return created, err
	}

	return created, s.wrote(rel, err)
}
