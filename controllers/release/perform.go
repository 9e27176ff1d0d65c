package release

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
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

// perform records a new revision, applies its objects, deletes those that the release had before, and records the
// result. From before anything is applied, the inventory has the objects of both.
func (s *session) perform(rel *helm.Release, action action, limit int) error {
	both := object.Union(s.client.Inventory(), s.known)
	if len(both) > v1alpha2.InventoryMaxItems {
		return fmt.Errorf("release %s would have %d objects, and can have %d", s.release, len(both),
			v1alpha2.InventoryMaxItems)
	}

	s.store.SetInventory(both)

	if err := s.store.Limit(historyLimit(limit)); err != nil {
		s.log.Info("Old revisions could not be deleted, and will be later", "problem", err.Error())
	}

	now := helm.At(time.Now())
	if rel.Info.FirstDeployed.IsZero() {
		rel.Info.FirstDeployed = now
	}

	rel.Info.LastDeployed = now
	rel.SetStatus(action.pending, action.started)

	if err := s.store.Create(rel); err != nil {
		return err
	}

	s.inventory = both
	err := s.client.Apply()

	outcome := storage.Outcome{
		Adopted:     s.client.Adopted(),
		Description: action.done,
	}

	switch {
	case err != nil && action.failed == "":
		outcome.Description = action.started + "; the rollback failed: " + object.Text(err)
	case err != nil:
		outcome.Description = fmt.Sprintf(action.failed, s.release.Name, object.Text(err))
	default:
		s.inventory = s.client.Applied(both)
		err = s.store.Supersede(rel.Version)
	}

	if err != nil {
		outcome.Failure = failureOf(err)
	}

	ended := s.store.End(rel, outcome)
	if apierrors.IsNotFound(ended) {
		return undo(s.client, s.release)
	}

	return cmp.Or(err, ended)
}

// undo deletes what an action has created in a release that another program has uninstalled meanwhile. If only the
// records were deleted, what existed before is left, so that the release is installed again.
func undo(client *cluster.Client, release types.NamespacedName) error {
	if err := client.Undo(); err != nil {
		return err
	}

	return &UninstalledError{Release: release}
}

// undoIfUninstalled does so after an action that writes no record, which therefore does not notice it.
func (e *Engine) undoIfUninstalled(ctx context.Context, client *cluster.Client, release types.NamespacedName) error {
	ctx, cancel := consistency.Outcome(ctx)
	defer cancel()

	history, err := e.observeLive(ctx, release)
	if err != nil || len(history.Revisions) > 0 {
		return err
	}

	return undo(client, release)
}
