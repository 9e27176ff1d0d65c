package release

import (
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// uninstall deletes the release. The newest revision tells how far an earlier attempt has come.
func (s *session) uninstall(confirmed state.Confirmed, options cluster.RemoveOptions) error {
	newest, status := s.store.Newest()
	if newest == 0 {
		return nil
	}

	if err := s.checkDigest(newest, confirmed); err != nil {
		return err
	}

	s.hooks = confirmed.Hooks()

	if len(s.store.Readable()) == 0 {
		return &storage.CorruptError{
			Secret: s.release.Namespace + "/" + helm.RecordName(s.release.Name, newest),
			Reason: "nor can an older one, so the objects to delete are unknown",
		}
	}

	if rel := s.store.Find(newest); rel != nil && status != state.StatusUninstalled {
		err := s.removeRevision(rel, status, options)
		if err != nil {
			return err
		}
	} else if err := s.removeObjects(options); err != nil {
		return err
	}

	return s.store.Purge()
}

// removeRevision deletes the objects of the release, between the hooks of its newest revision.
func (s *session) removeRevision(rel *helm.Release, status state.Status, options cluster.RemoveOptions) error {
	if status != state.StatusUninstalling || rel.Info.Deleted.IsZero() {
		rel.Info.Deleted = helm.At(s.engine.clock.Now())
		rel.SetStatus(helm.StatusUninstalling, "Deletion in progress (or silently failed)")

		if err := s.store.Record(rel); err != nil {
			return err
		}
	}

	if err := s.runHooks(rel, helm.HookPreDelete); err != nil {
		return err
	}

	if err := s.removeObjects(options); err != nil {
		return err
	}

	if len(hooksOf(rel, helm.HookPostDelete)) == 0 {
		return nil
	}

	if err := s.runHooks(rel, helm.HookPostDelete); err != nil {
		return err
	}

	rel.SetStatus(helm.StatusUninstalled, "Uninstallation complete")

	return s.store.Record(rel)
}

// removeObjects deletes the objects of all revisions that may exist.
func (s *session) removeObjects(options cluster.RemoveOptions) error {
	manifests := s.store.CurrentManifests()

	if !options.AtOnce {
		s.client.SetOwnKinds(options.Own)

		if err := s.client.RemoveFirst(manifests); err != nil {
			return err
		}
	}

	return s.client.Remove(manifests)
}
