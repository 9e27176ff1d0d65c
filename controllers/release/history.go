package release

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// MarkHealthy records that all objects of an observed revision were healthy, so that it can be
// rolled back to. It returns the new resource version of the revision, or storage.ErrChanged if the revision has
// changed since it was observed.
func (e *Engine) MarkHealthy(
	ctx context.Context, release types.NamespacedName, revision state.Revision,
) (resourceVersion string, err error) {
	return e.label(ctx, release, revision, map[string]string{storage.HealthyLabel: "true"})
}

// MarkRequest records that a request was handled without a new revision: the observed revision, which is
// the newest one, is what it asks for, or another program's that is left in place. It is otherwise like
// MarkHealthy.
func (e *Engine) MarkRequest(
	ctx context.Context, release types.NamespacedName, revision state.Revision, request state.Request,
) (resourceVersion string, err error) {
	return e.label(ctx, release, revision, storage.RequestLabels(request, revision.Number))
}

// MarkFinished records that Jobs of the observed revision have completed, so that they are not missed when
// they are deleted. It is otherwise like MarkHealthy.
func (e *Engine) MarkFinished(
	ctx context.Context, release types.NamespacedName, revision state.Revision, jobs []object.Key,
) (resourceVersion string, err error) {
	return e.label(ctx, release, revision, storage.FinishedJobLabels(revision.Number, jobs))
}

// label changes labels of an observed revision by one patch. They are a map from names to strings, or to nil
// for labels to be removed. It returns storage.ErrChanged if the revision has been changed, replaced or deleted
// since.
func (e *Engine) label(
	ctx context.Context, release types.NamespacedName, revision state.Revision, labels any,
) (resourceVersion string, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             revision.UID,
		"resourceVersion": revision.ResourceVersion,
		"labels":          labels,
	}})
	if err != nil {
		return "", err
	}

	secret := helm.RecordName(release.Name, revision.Number)
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}

	patched, err := e.metadata.Namespace(release.Namespace).Patch(ctx, secret, types.MergePatchType, patch, options)
	if err != nil {
		e.written.Note(release, "")
	}

	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", fmt.Errorf("revision %d of release %s: %w", revision.Number, release, storage.ErrChanged)
	case err != nil:
		return "", storage.NewError(release.Namespace+"/"+secret, err)
	}

	e.written.Note(release, patched.ResourceVersion)

	return patched.ResourceVersion, nil
}

// MarkFailed records that an observed revision, which is deployed, has failed after all. Helm shows
// the reason in its history. It applies nothing. It returns storage.ErrChanged if the revision has changed
// since it was observed.
func (e *Engine) MarkFailed(
	ctx context.Context,
	release types.NamespacedName,
	revision state.Revision,
	failure state.Failure,
	reason string,
) error {
	_, err := e.amend(ctx, release, revision, []state.Revision{revision}, func(s *session) error {
		return s.store.FailNewest(failure, reason)
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

		if err := s.loadObserved(ctx, revision); err != nil {
			return err
		}

		return action(s)
	})
}
