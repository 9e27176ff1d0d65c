package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// action is a way to change a release by a new revision.
type action struct {
	pending helm.Status
	// What the history of Helm shows: while the action runs, once it has succeeded, and before the reason of a failure,
	// which is empty for a rollback.
	started, done, failed string
}

var (
	installing = action{
		helm.StatusPendingInstall, "Initial install underway", "Install complete", "Release %q failed: %s",
	}
	upgrading = action{
		helm.StatusPendingUpgrade, "Preparing upgrade", "Upgrade complete", "Upgrade %q failed: %s",
	}
)

// attempt is a new revision that only has to be recorded and applied.
type attempt struct {
	next   *storage.Next
	record *helm.Release
	set    *apply.Set
	action action
	// adoptedVersion is the version that another program has installed; empty if that is unknown.
	adoptedVersion string
	// limit is how many revisions are kept, and kept one of them; 0 for none.
	limit, kept int
}

// perform records a new revision, applies its objects, deletes those that the release had before, and records the
// result. From before anything is applied, the inventory has the objects of both.
func (s *session) perform(ctx context.Context, a attempt) (Result, error) {
	both := a.set.InventoryBefore()
	if len(both) > v1alpha2.ObjectsMaxItems {
		return Result{}, fmt.Errorf("release %s would have %d objects, and can have %d", s.release, len(both),
			v1alpha2.ObjectsMaxItems)
	}

	if err := s.store.Limit(historyLimit(a.limit), a.kept); err != nil {
		s.log.Info("Old revisions could not be deleted, and will be later", "problem", err.Error())
	}

	rel, now := a.record, helm.At(time.Now())
	if rel.Info.FirstDeployed.IsZero() {
		rel.Info.FirstDeployed = now
	}

	rel.Info.LastDeployed = now
	rel.SetStatus(a.action.pending, a.action.started)

	start := storage.Start{AdoptedVersion: a.adoptedVersion, Inventory: both}
	if first, more := a.set.FirstWave(); more {
		start.Wave = new(int(first)) // it may need Advance
	}

	created, err := a.next.Create(ctx, rel, start)
	if !errors.Is(err, storage.ErrChanged) {
		s.engine.begun.Store(s.release, rel.Version) // also if the answer was lost
	}

	if err != nil {
		return Result{}, err
	}

	results, err := a.set.Apply()
	result := Result{Inventory: both, Results: results}

	if err == nil {
		result.Inventory = a.set.InventoryAfter(results)
		err = s.store.Supersede(rel.Version)
	}

	ended := s.store.End(ctx, rel, created, s.outcome(a.action, result, err))
	if ended == nil {
		s.engine.begun.Delete(s.release)
	}

	if apierrors.IsNotFound(ended) {
		return result, undo(s.client, s.release, results)
	}

	return result, cmp.Or(err, ended)
}

// outcome returns how an action has ended.
func (s *session) outcome(action action, result Result, err error) storage.Outcome {
	outcome := storage.Outcome{Adopted: len(result.Adopted()), Description: action.done}

	switch {
	case err == nil:
		return outcome
	case action.failed == "":
		outcome.Description = action.started + "; the rollback failed: " + object.Text(err)
	default:
		outcome.Description = fmt.Sprintf(action.failed, s.release.Name, object.Text(err))
	}

	outcome.Failure = failureOf(err)

	return outcome
}

// undo deletes what an action has created in a release that another program has uninstalled meanwhile. If only the
// records were deleted, what existed before is left, so that the release is installed again.
func undo(client *apply.Client, release types.NamespacedName, results apply.Results) error {
	if err := client.Undo(results); err != nil {
		return err
	}

	return &UninstalledError{Release: release}
}

// undoIfUninstalled does so after an action that writes no record, which therefore does not notice it.
func (e *Engine) undoIfUninstalled(
	ctx context.Context, client *apply.Client, release types.NamespacedName, results apply.Results,
) error {
	ctx, cancel := consistency.Outcome(ctx)
	defer cancel()

	history, err := e.observeLive(ctx, release)
	if err != nil || len(history.Revisions) > 0 {
		return err
	}

	return undo(client, release, results)
}
