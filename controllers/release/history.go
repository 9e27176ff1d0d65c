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
	return e.amendAlone(ctx, release, revision, func(s *session) error { return s.store.FailNewest(ctx, failure, reason) })
}

// Settle makes the record of an observed revision say how it has ended, which the status knows and storage does not,
// because that write was lost. It applies nothing.
func (e *Engine) Settle(ctx context.Context, release types.NamespacedName, revision state.Revision) error {
	return e.amendAlone(ctx, release, revision, func(s *session) error { return s.store.Settle("") })
}

// amendAlone runs an action that only writes the record of an observed revision, which must still be the newest one.
func (e *Engine) amendAlone(
	ctx context.Context, release types.NamespacedName, revision state.Revision, action func(*session) error,
) error {
	memory := state.Memory{Revisions: []state.Revision{revision}}

	_, err := e.amend(ctx, release, memory, revision, func(s *session) (Result, error) { return Result{}, action(s) })

	return err
}

// amend runs an action that changes an observed revision, which must still be the newest one.
func (e *Engine) amend(
	ctx context.Context,
	release types.NamespacedName,
	memory state.Memory,
	revision state.Revision,
	action func(*session) (Result, error),
) (Result, error) {
	memory.Last = revision.Number

	s, err := e.openConfirmed(ctx, release, memory, revision)
	if err != nil {
		return Result{}, err
	}

	return s.run(func() (Result, error) { return action(s) })
}
