package release

import (
	"context"
	"encoding/json"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// MarkHealthy notes that all objects of an observed revision were healthy, so that it is known
// after a restart as one to return to. It is one small write. ErrChanged says that the revision is
// no longer as it was observed.
func (e *Engine) MarkHealthy(ctx context.Context, namespace, name string, revision Revision) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": revision.UID, "labels": map[string]string{HealthyLabel: "true"},
	}})
	if err != nil {
		return err
	}

	secret := secretName(name, revision.Number)
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}

	patched, err := e.metadata.Namespace(namespace).Patch(ctx, secret, types.MergePatchType, patch, options)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("revision %d of release %s/%s: %w", revision.Number, namespace, name, ErrChanged)
	case err != nil:
		return &StorageError{Record: namespace + "/" + secret, Reason: reasonOf("Secret", err), cause: err}
	}

	e.records.touch(namespace, name, patched.UID, patched.ResourceVersion)

	return nil
}

// MarkFailed notes that an observed revision, which is deployed, has failed after all, and why:
// helm shows both. It applies nothing. ErrChanged says that the revision is no longer as it was
// observed.
func (e *Engine) MarkFailed(
	ctx context.Context,
	namespace, name string,
	revision Revision,
	failure Failure,
	reason string,
) error {
	done, err := e.begin(namespace, name)
	if err != nil {
		return err
	}
	defer done()

	s := e.newSession(ctx, namespace, name)
	if _, err := s.loadAsObserved(ctx, State{Revision: revision}); err != nil {
		return err
	}

	rel, _ := s.store.newest()
	if s.store.standIns[rel.Version] || !ownLabels(rel) {
		return fmt.Errorf("revision %d of release %s/%s: %w", revision.Number, namespace, name, ErrChanged)
	}

	rel.SetStatus(helmrelease.StatusFailed, shorten(reason))
	rel.Labels[FailureLabel] = string(failure)

	return s.store.Update(secretName(name, rel.Version), rel)
}
