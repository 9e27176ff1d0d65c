package release

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/manifest"
	"github.com/capstan-project/capstan/controllers/release/state"
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
// of the revisions whose objects may exist. The error is a *cluster.HookError if hooks have not ended: resume continues
// then.
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

	err := s.runHooks(rel, action.before)
	if err == nil {
		err = s.client.Apply(bases)
	}

	return s.complete(rel, action, s.store.Staged(), err)
}

// resume continues a revision after perform, or an earlier attempt, has ended because of a hook.
func (s *session) resume(revision state.Revision) error {
	rel := s.store.Find(revision.Number)
	if rel == nil {
		return fmt.Errorf("revision %d of release %s: %w", revision.Number, s.release, storage.ErrChanged)
	}

	action := s.actionOf(rel)
	if helm.HookEvent(s.hooks.Event) == action.after {
		return s.complete(rel, action, revision.Staged, nil)
	}

	err := s.runHooks(rel, action.before)
	if err == nil {
		err = s.applyRecorded(rel, action)
	}

	return s.complete(rel, action, revision.Staged, err)
}

// actionOf returns the action that a pending revision results from.
func (s *session) actionOf(rel *helm.Release) action {
	switch rel.Info.Status {
	case helm.StatusPendingInstall:
		return installing
	case helm.StatusPendingUpgrade:
		return upgrading
	}

	action := rollingBack
	action.started, action.done = rel.Info.Description, rel.Info.Description

	return action
}

// applyRecorded applies the objects of a revision as they are recorded.
func (s *session) applyRecorded(rel *helm.Release, action action) error {
	objects, err := manifest.Decode(rel.Manifest)
	if err != nil {
		return err
	}

	if action.pending == helm.StatusPendingRollback {
		err = s.client.SetPartialTarget(objects)
	} else {
		err = s.client.SetTarget(objects, func(schema.GroupKind) bool { return false })
	}

	if err != nil {
		return err
	}

	bases := s.store.KnownManifests()[1:]
	if action.pending == helm.StatusPendingInstall && len(bases) < 2 {
		bases = nil // all is complete that was installed before
	}

	return s.client.Apply(bases)
}

// complete runs the last hooks of a revision whose objects were applied, and records the result. If it is staged, the
// last hooks run after the last wave, see Engine.Advance. err is why the objects were not applied.
func (s *session) complete(rel *helm.Release, action action, staged bool, err error) error {
	noted := s.noteApplied(rel)

	if err == nil && !staged {
		err = s.runLast(rel, action.after, noted)
	}

	if errors.As(err, new(*cluster.HookError)) {
		return err
	}

	adopted, _ := strconv.Atoi(rel.Labels[storage.AdoptedLabel]) // 0 without the label
	outcome := storage.Outcome{
		Adopted: adopted, Unpruned: rel.Labels[storage.UnprunedLabel] == "true", Description: action.done,
	}

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

// runLast runs the last hooks of a revision, which may end in another attempt. That has to know what was noted.
func (s *session) runLast(rel *helm.Release, event helm.HookEvent, noted bool) error {
	if noted && len(hooksOf(rel, event)) > 0 {
		if err := s.store.Record(rel); err != nil {
			return err
		}
	}

	return s.runHooks(rel, event)
}

// noteApplied notes what was found when the objects were applied, and reports whether that is something.
func (s *session) noteApplied(rel *helm.Release) bool {
	adopted, unpruned := s.client.Adopted(), s.client.Unpruned()

	if adopted > 0 {
		rel.Labels[storage.AdoptedLabel] = strconv.Itoa(adopted)
	}

	if unpruned {
		rel.Labels[storage.UnprunedLabel] = "true"
	}

	return adopted > 0 || unpruned
}
