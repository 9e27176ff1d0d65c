package release

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// UninstallOptions are the options of Engine.Uninstall.
type UninstallOptions struct {
	// Newest is the newest revision as it was observed; zero if the release has no records.
	Newest state.Revision
	// AtOnce deletes all objects at the same time: none waits for others to be gone.
	AtOnce bool
}

// Uninstall deletes the release: the objects of its inventory, and its history, whatever that says.
//
// It keeps CRDs, Namespaces and objects with the annotation "helm.sh/resource-policy: keep". It can be called at any
// time, whatever state an earlier attempt or another program has left, also if there are no records. The error wraps
// storage.ErrChanged if the newest revision is no longer the one that was observed.
//
// Objects are deleted in the order of their annotations, and those of the release's own kinds first: only the
// release's manager can process their finalizers. While one still exists that others wait for, the error is a
// *apply.RemainingError and these are not deleted.
func (e *Engine) Uninstall(
	ctx context.Context, release types.NamespacedName, memory state.Memory, options UninstallOptions,
) (Result, error) {
	defer e.written.Note(release, "")

	if options.Newest.Number == 0 {
		results, err := e.newClient(ctx, release, memory).Remove(options.AtOnce)
		return Result{Results: results}, err
	}

	// The inventory may lack what another program has installed since it was observed.
	s, err := e.open(ctx, release, memory, options.Newest)
	if err != nil {
		return Result{}, err
	}

	return s.run(func() (Result, error) { return s.uninstall(ctx, options) })
}

// uninstall deletes the release. The newest revision tells how far an earlier attempt has come.
func (s *session) uninstall(ctx context.Context, options UninstallOptions) (Result, error) {
	rel, err := s.store.Find(options.Newest.Number)
	if err != nil {
		return Result{}, err
	}

	if rel != nil && options.Newest.Status != v1alpha2.RevisionUninstalled {
		if err := s.recordUninstall(rel, options.Newest.Status); err != nil {
			return Result{}, err
		}
	}

	results, err := s.client.Remove(options.AtOnce)
	result := Result{Results: results}

	if err != nil {
		return result, err
	}

	if err := s.store.Purge(); err != nil {
		return result, err
	}

	history, err := s.engine.observeLive(ctx, s.release)
	if err == nil && len(history.Revisions) > 0 { // another program has rolled it back meanwhile
		err = fmt.Errorf("release %s: %w", s.release, storage.ErrChanged)
	}

	return result, err
}

// recordUninstall records with the newest revision that the release is being deleted, as Helm does.
func (s *session) recordUninstall(rel *helm.Release, status v1alpha2.RevisionStatus) error {
	if status == v1alpha2.RevisionUninstalling && !rel.Info.Deleted.IsZero() {
		return nil
	}

	rel.Info.Deleted = helm.At(time.Now())
	rel.SetStatus(helm.StatusUninstalling, "Deletion in progress (or silently failed)")

	return s.store.Record(rel)
}
