package release

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Advance completes a staged revision, which must be the newest one and deployed. Call it once all objects
// but those that Waiting returns are healthy, and again until it succeeds: it applies the objects of the
// release's own kinds, deletes those of its own kinds that the revision no longer has, and once these are
// gone everything else that the revision no longer has. What it has done is seen in the cluster, so it can
// stop at any time.
//
// After a *RejectedError or *ConflictError the revision is marked failed. Other errors are those of Prepared.Apply,
// and *RemainingError while objects that were deleted still exist; the revision stays staged.
func (e *Engine) Advance(
	ctx context.Context, release types.NamespacedName, revision state.Revision, own OwnKinds,
) (Result, error) {
	return e.amend(ctx, release, revision, func(s *session) error {
		s.client.SetOwnKinds(own)
		manifests := s.store.CurrentManifests()
		err := s.client.Advance(manifests[0], manifests[1:])

		if errors.As(err, new(*RejectedError)) || errors.As(err, new(*ConflictError)) {
			return errors.Join(err, s.store.FailNewest(state.FailureRejected, err.Error()))
		}

		if err != nil {
			return err
		}

		_, err = e.label(ctx, release, revision, map[string]any{storage.StagedLabel: nil})

		return err
	})
}

// recordStages records whether the new revision needs Advance, before anything is applied.
func (s *session) recordStages() error {
	staged, err := s.client.IsStaged(s.store.CurrentManifests())
	s.store.SetStaged(staged)

	return err
}

// Waiting returns the objects of a record that wait for all others.
func (e *Engine) Waiting(record *Record, own OwnKinds) []object.Key {
	var keys []object.Key

	for _, o := range record.Objects {
		if e.isOwn(o, own) {
			keys = append(keys, object.KeyOf(o))
		}
	}

	return keys
}

func (e *Engine) isOwn(o *unstructured.Unstructured, own OwnKinds) bool {
	mapping, err := e.connection.Mapping(o.GroupVersionKind())
	return err == nil && slices.Contains(own, mapping.Resource.GroupResource())
}
