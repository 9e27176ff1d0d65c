package release

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// MarkFailed records that an observed revision, which is deployed, has failed after all. Helm shows
// the reason in its history. It applies nothing. It returns storage.ErrChanged if the revision has changed
// since it was observed.
func (e *Engine) MarkFailed(
	ctx context.Context,
	release types.NamespacedName,
	revision state.Revision,
	failure v1alpha2.RevisionFailure,
	reason string,
) error {
	_, err := e.amend(ctx, release, revision, []state.Revision{revision}, func(s *session) error {
		return s.store.FailNewest(failure, reason)
	})

	return err
}

// Settle makes the record of an observed revision say how it has ended, which the status knows and storage does not,
// because that write was lost. It applies nothing.
func (e *Engine) Settle(ctx context.Context, release types.NamespacedName, revision state.Revision) error {
	_, err := e.amend(ctx, release, revision, []state.Revision{revision}, func(s *session) error {
		return s.store.Settle("")
	})

	return err
}

// amend runs an action that changes an observed revision, which must still be the newest one.
func (e *Engine) amend(
	ctx context.Context,
	release types.NamespacedName,
	revision state.Revision,
	known []state.Revision,
	action func(*session) error,
) (Result, error) {
	return e.run(ctx, release, state.Observed{}, func(s *session) error {
		s.store.Recall(known)
		s.store.SetLast(revision.Number)

		if err := s.loadObserved(ctx, revision); err != nil {
			return err
		}

		return action(s)
	})
}
