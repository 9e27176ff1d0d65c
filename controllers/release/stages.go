package release

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Advance takes the next step with a confirmed revision, which must be the newest one, staged and deployed. Call it
// once all objects but those that Waiting returns are healthy, and again until the revision is not staged any more:
// each step applies the next wave. The last one deletes what the revision no longer has, one wave after the other. What
// has been done is in the result, and is done again if the caller does not remember it, so it can stop at any time.
//
// After a *apply.RejectedError or *apply.ConflictError, the revision is marked failed. What may be accepted once
// the wave before takes effect is a *apply.UnavailableError for a few seconds. Other errors are those of
// Prepared.Apply, and *apply.RemainingError while objects that were deleted still exist; the revision stays as it is.
func (e *Engine) Advance(
	ctx context.Context, release types.NamespacedName, memory state.Memory, revision state.Revision,
) (Result, error) {
	if !revision.Confirmed() {
		return Result{}, Unconfirmed(release, revision.Number, 0)
	}

	result, err := e.amend(ctx, release, memory, revision, func(s *session) (Result, error) {
		return s.advance(ctx, revision)
	})
	if err != nil {
		result.Wave = revision.Wave
	}

	return result, err
}

func (s *session) advance(ctx context.Context, revision state.Revision) (Result, error) {
	rel, err := s.find(revision)
	if err != nil {
		return Result{}, err
	}

	advanced, err := s.client.Advance(rel.Manifest, placeOf(revision))
	result := Result{
		Inventory: object.Union(advanced.Inventory, s.memory.Inventory), Results: advanced.Results,
	}

	if err := s.engine.undoIfUninstalled(ctx, s.client, s.release, advanced.Results); err != nil {
		return result, err
	}

	refused := new(apply.RejectedError)
	if errors.As(err, &refused) && refused.MayBeAccepted() && takesEffect(revision) {
		return result, &apply.UnavailableError{Objects: refused.Objects}
	}

	if refused.Objects != nil || errors.As(err, new(*apply.ConflictError)) {
		return result, errors.Join(err, s.store.FailNewest(ctx, v1alpha2.FailureRejected, err.Error()))
	}

	switch {
	case err != nil:
		return result, err
	case advanced.Complete:
		result.Inventory = advanced.Inventory
	default:
		result.Wave = new(int(advanced.Wave))
	}

	return result, nil
}

// effectTime is how long what was applied, such as a policy, may take to have an effect on the API server.
const effectTime = 5 * time.Second

// takesEffect reports whether the last wave of a revision may not have an effect yet.
func takesEffect(revision state.Revision) bool {
	return time.Now().Before(revision.LastTransitionTime.Add(effectTime))
}

// placeOf returns the wave that was applied last of a staged revision.
func placeOf(revision state.Revision) asks.Place { return asks.Place(ptr.Deref(revision.Wave, 0)) }

// Waiting returns the objects of a staged revision's record that wait for earlier waves, the next ones first.
func (e *Engine) Waiting(record *Record, revision state.Revision, own apply.OwnKinds) []asks.Held {
	isOwn := func(o *unstructured.Unstructured) bool { return e.isOwn(o, own) }

	return asks.Hold(record.Objects, isOwn, placeOf(revision))
}

func (e *Engine) isOwn(o *unstructured.Unstructured, own apply.OwnKinds) bool {
	mapping, err := e.connection.Mapping(o.GroupVersionKind())
	return err == nil && slices.Contains(own, mapping.Resource.GroupResource())
}
