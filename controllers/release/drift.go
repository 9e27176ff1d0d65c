package release

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Compare compares objects of a release, as Read returns them, with those in the cluster. It
// changes nothing. See apply.Client.Compare for what counts as a difference.
func (e *Engine) Compare(
	ctx context.Context,
	release types.NamespacedName,
	objects []*unstructured.Unstructured,
) (apply.Comparison, error) {
	return e.newClient(ctx, release, state.Memory{}).Compare(objects)
}

// IsScaled reports whether an autoscaler in the cluster sets the replicas of an object of a release.
func (e *Engine) IsScaled(ctx context.Context, release types.NamespacedName, o object.Key) (bool, error) {
	return e.newClient(ctx, release, state.Memory{}).IsScaled(o)
}

// Correct changes the objects that differ to what their release defines: it creates those that are
// missing and changes the others, as an upgrade would, but without a new revision. It skips
// differences with an obstacle. revision is the one that was compared, by a record that confirms it.
// The result has the objects that were corrected, even if others could not be.
//
// The error is a *problem.Error while another action on the release is running, and wraps storage.ErrChanged
// if the revision is no longer the newest one; nothing was done then. Otherwise it is a
// *apply.RejectedError, *apply.UnavailableError or *apply.ConflictError as from Prepared.Apply.
func (e *Engine) Correct(
	ctx context.Context,
	release types.NamespacedName,
	revision state.Revision,
	differences []apply.Difference,
) (Result, error) {
	if !revision.Confirmed() {
		return Result{}, Unconfirmed(release, revision.Number, 0)
	}

	if err := e.checkNewest(ctx, release, revision); err != nil {
		return Result{}, err
	}

	client := e.newClient(ctx, release, state.Memory{})
	results, err := client.Correct(differences)

	return Result{Results: results}, cmp.Or(e.undoIfUninstalled(ctx, client, release, results), err)
}

// checkNewest returns an error unless the revision is the newest one and no other program works on
// the release.
func (e *Engine) checkNewest(ctx context.Context, release types.NamespacedName, revision state.Revision) error {
	history, err := e.observeLive(ctx, release)
	if err != nil {
		return err
	}

	history = history.Near(revision.Number)

	if len(history.Revisions) > 0 {
		history.Revisions[0] = revision.Or(history.Revisions[0])
	}

	observed := e.Determine(history, "")

	switch {
	case observed.State == state.Locked:
		return locked(observed)
	case observed.Revision.Number != revision.Number || observed.State == state.Interrupted:
		return fmt.Errorf("release %s: %w", release, storage.ErrChanged)
	}

	return nil
}
