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

	if err := s.load(ctx); err != nil {
		return err
	}

	newest, status := s.store.Newest()
	if newest != options.Newest.Number || status != options.Newest.Status {
		s.remember() // the inventory may lack what another program has installed meanwhile

		return fmt.Errorf("release %s: %w", s.release, storage.ErrChanged)
	}

	rel, err := s.store.Find(newest)
	if err != nil {
		return err
	}

	if rel != nil && status != v1alpha2.RevisionUninstalled {
		if err := s.recordUninstall(rel, status); err != nil {
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
