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
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// AdvanceOptions are the options of Engine.Advance.
type AdvanceOptions struct {
	// Own is the same as in Spec.
	Own cluster.OwnKinds
	// Known and Inventory are the same as in PrepareOptions.
	Known     []state.Revision
	Inventory []object.Key
	// Announce is called before it is written that the revision has failed; it may be nil.
	Announce state.Announce
}

// Advance takes the next step with a confirmed revision, which must be the newest one, staged and deployed. Call it
// once all objects but those that Waiting returns are healthy, and again until the revision is not staged any more:
// each step applies the next wave. The last one deletes what the revision no longer has, one wave after the other. What
// has been done is in the result, and is done again if the caller does not remember it, so it can stop at any time.
//
// After a *cluster.RejectedError or *cluster.ConflictError, the revision is marked failed. What may be accepted once
// the wave before takes effect is a *cluster.UnavailableError for a few seconds. Other errors are those of
// Prepared.Apply, and *cluster.RemainingError while objects that were deleted still exist; the revision stays as it is.
func (e *Engine) Advance(
	ctx context.Context, release types.NamespacedName, revision state.Revision, options AdvanceOptions,
) (Result, error) {
	if !revision.Confirmed() {
		return Result{}, Unconfirmed(release, revision.Number, 0)
	}

	last := revision.Wave

	result, err := e.amend(ctx, release, revision, options.Known, func(s *session) error {
		s.client.SetOwnKinds(options.Own)
		s.store.SetAnnounce(options.Announce)

		rel, err := s.find(revision)
		if err != nil {
			return err
		}

		wave, complete, err := s.client.Advance(rel.Manifest, options.Inventory, placeOf(revision))
		s.inventory = object.Union(s.client.Inventory(), options.Inventory)

		if err := e.undoIfUninstalled(ctx, s.client, release); err != nil {
			return err
		}

		refused := new(cluster.RejectedError)
		if errors.As(err, &refused) && refused.MayBeAccepted() && e.takesEffect(revision) {
			return &cluster.UnavailableError{Objects: refused.Objects}
		}

		if refused.Objects != nil || errors.As(err, new(*cluster.ConflictError)) {
			return errors.Join(err, s.store.FailNewest(v1alpha2.FailureRejected, err.Error()))
		}

		if err != nil {
			return err
		}

		last = new(int(wave))

		if complete {
			s.inventory, last = s.client.Inventory(), nil
		}

		return nil
	})

	result.Wave = last

	return result, err
}

// effectTime is how long what was applied, such as a policy, may take to have an effect on the API server.
const effectTime = 5 * time.Second

// takesEffect reports whether the last wave of a revision may not have an effect yet.
func (e *Engine) takesEffect(revision state.Revision) bool {
	return time.Now().Before(revision.LastTransitionTime.Add(effectTime))
}

// recordStages finds what the release has besides the target, and records what is left to do with the new revision
// after the first wave, before anything is applied: it may need Advance.
func (s *session) recordStages() {
	s.client.Drop(s.known)

	if first, more := s.client.FirstWave(); more {
		s.store.SetStaged(first)
	}
}

// placeOf returns the wave that was applied last of a staged revision.
func placeOf(revision state.Revision) waves.Place { return waves.Place(ptr.Deref(revision.Wave, 0)) }

// Waiting returns the objects of a staged revision's record that wait for earlier waves, the next ones first.
func (e *Engine) Waiting(record *Record, revision state.Revision, own cluster.OwnKinds) []waves.Held {
	isOwn := func(o *unstructured.Unstructured) bool { return e.isOwn(o, own) }

	return waves.Hold(record.Objects, isOwn, placeOf(revision))
}

func (e *Engine) isOwn(o *unstructured.Unstructured, own cluster.OwnKinds) bool {
	mapping, err := e.connection.Mapping(o.GroupVersionKind())
	return err == nil && slices.Contains(own, mapping.Resource.GroupResource())
}
