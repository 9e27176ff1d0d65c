package release

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// uninstall deletes the release. The newest revision tells how far an earlier attempt has come.
func (s *session) uninstall(ctx context.Context, options UninstallOptions) error {
	if options.Newest.Number == 0 {
		return s.client.Remove(options.Inventory, options.RemoveOptions)
	}

	// The inventory may lack what another program has installed since it was observed.
	if err := s.loadNewest(ctx, options.Newest); err != nil {
		return err
	}

	rel, err := s.store.Find(options.Newest.Number)
	if err != nil {
		return err
	}

	if rel != nil && options.Newest.Status != v1alpha2.RevisionUninstalled {
		if err := s.recordUninstall(rel, options.Newest.Status); err != nil {
			return err
		}
	}

	if err := s.client.Remove(options.Inventory, options.RemoveOptions); err != nil {
		return err
	}

	if err := s.store.Purge(); err != nil {
		return err
	}

	history, err := s.engine.observeLive(ctx, s.release)
	if err == nil && len(history.Revisions) > 0 { // another program has rolled it back meanwhile
		err = fmt.Errorf("release %s: %w", s.release, storage.ErrChanged)
	}

	return err
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
