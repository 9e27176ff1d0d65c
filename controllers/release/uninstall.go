package release

import (
	"time"

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

	if len(s.store.Readable()) == 0 {
		return &storage.CorruptError{
			Secret: s.release.Namespace + "/" + helm.RecordName(s.release.Name, newest),
			Reason: "nor can an older one, so the objects to delete are unknown",
		}
	}

	if rel := s.store.Find(newest); rel != nil && status != state.StatusUninstalled {
		if err := s.recordUninstall(rel, status); err != nil {
			return err
		}
	}

	if err := s.removeObjects(options); err != nil {
		return err
	}

	return s.store.Purge()
}

// recordUninstall records with the newest revision that the release is being deleted, as Helm does.
func (s *session) recordUninstall(rel *helm.Release, status state.Status) error {
	if status == state.StatusUninstalling && !rel.Info.Deleted.IsZero() {
		return nil
	}

	rel.Info.Deleted = helm.At(time.Now())
	rel.SetStatus(helm.StatusUninstalling, "Deletion in progress (or silently failed)")

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
