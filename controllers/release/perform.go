package release

import (
	"cmp"
	"fmt"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// action is a way to change a release by a new revision.
type action struct {
	pending       helm.Status
	before, after helm.HookEvent
	// What the history of Helm shows: while the action runs, once it has succeeded, and before the reason of a failure.
	started, done, failed string
}

var (
	installing = action{
		helm.StatusPendingInstall, helm.HookPreInstall, helm.HookPostInstall,
		"Initial install underway", "Install complete", "Release %q failed: %s",
	}
	upgrading = action{
		helm.StatusPendingUpgrade, helm.HookPreUpgrade, helm.HookPostUpgrade,
		"Preparing upgrade", "Upgrade complete", "Upgrade %q failed: %s",
	}
	rollingBack = action{pending: helm.StatusPendingRollback, before: helm.HookPreRollback, after: helm.HookPostRollback}
)

// perform records a new revision, runs its hooks, applies its objects and records the result. bases are the manifests
// of the revisions whose objects may exist.
func (s *session) perform(rel *helm.Release, action action, bases []string, limit int) error {
	if err := s.store.Limit(historyLimit(limit)); err != nil {
		s.log.Info("Old revisions could not be deleted, and will be later", "problem", err.Error())
	}

	now := helm.At(s.engine.clock.Now())
	if rel.Info.FirstDeployed.IsZero() {
		rel.Info.FirstDeployed = now
	}

	rel.Info.LastDeployed = now
	rel.SetStatus(action.pending, action.started)

	if err := s.store.Create(rel); err != nil {
		return err
	}

	err := s.applyRevision(rel, action, bases)
	outcome := storage.Outcome{Adopted: s.client.Adopted(), Unpruned: s.client.Unpruned(), Description: action.done}

	switch {
	case err != nil && action.failed == "":
		outcome.Description = action.started + "; the rollback failed: " + err.Error()
	case err != nil:
		outcome.Description = fmt.Sprintf(action.failed, s.release.Name, err)
	}

	if err == nil {
		err = s.store.Supersede(rel.Version)
	}

	if err != nil {
		outcome.Failure = failureOf(err)
	}

	return cmp.Or(err, s.store.End(rel, outcome))
}

// applyRevision applies the objects of a revision, between its hooks. If there are more waves, the last hooks run after
// these, see Engine.Advance.
func (s *session) applyRevision(rel *helm.Release, action action, bases []string) error {
	if err := s.runHooks(rel, action.before, helm.Time{}); err != nil {
		return err
	}

	if err := s.client.Apply(bases); err != nil {
		return err
	}

	if s.store.Staged() {
		return nil
	}

	return s.runHooks(rel, action.after, helm.Time{})
}
