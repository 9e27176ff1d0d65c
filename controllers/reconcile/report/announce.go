package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/inventory"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Change is a change of the status that becomes known before the end of a reconcile, and that the rest of it depends
// on. It leaves the status that it is given as it is.
type Change func(v1alpha2.ProviderStatus) v1alpha2.ProviderStatus

// change returns a change of a copy.
func change(apply func(*v1alpha2.ProviderStatus)) Change {
	return func(status v1alpha2.ProviderStatus) v1alpha2.ProviderStatus {
		changed := *status.DeepCopy()
		apply(&changed)

		return changed
	}
}

// Resolved is the version that spec.version was resolved to.
func Resolved(version string) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.DesiredVersion = version })
}

// Uses is the chart of the desired version.
func Uses(chart *v1alpha2.ChartStatus) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.Chart = chart })
}

// Lacks is which variables have no value.
func Lacks(variables []string) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.MissingVariables = variables })
}

// Orphans is which CRDs the desired version no longer includes.
func Orphans(crds []string) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.OrphanedCRDs = crds })
}

// Handled is the value of the annotation that requests a reconcile.
func Handled(request string) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.LastHandledReconcileAt = request })
}

// Announces is what is about to be written of a revision of the release. If it is about to be created, a record whose
// resource does not know of it proves nothing. How that has ended is known before it is in the record, too.
func Announces(a state.Announcement) Change {
	if !a.Status.Pending() {
		return ended(a)
	}

	announced := &v1alpha2.AnnouncedRevision{
		Action: v1alpha2.ReleaseUpgrade, Revision: int64(a.Revision), Digest: a.Digest,
		Wave: wave(a.Staged, a.Wave), Request: request(a.Request),
	}

	switch a.Status {
	case state.StatusPendingInstall:
		announced.Action = v1alpha2.ReleaseInstall
	case state.StatusPendingRollback:
		announced.Action = v1alpha2.ReleaseRollback
	}

	return change(func(s *v1alpha2.ProviderStatus) {
		s.Inventory = inventory.Entries(a.Inventory)

		// The records of revisions after the next one were deleted.
		s.History = slices.DeleteFunc(s.History, func(r v1alpha2.ReleaseRevision) bool {
			return r.Revision > announced.Revision
		})

		if former := s.Announced; former != nil && former.Digest != "" && former.Revision < announced.Revision {
			s.History = enterFormer(s.History, entryOf(former))
		}

		s.Announced = announced
	})
}

// enterFormer enters a revision that was announced before the next one, unless the history has how it has ended.
func enterFormer(history []v1alpha2.ReleaseRevision, former v1alpha2.ReleaseRevision) []v1alpha2.ReleaseRevision {
	if entryIn(history, former.Revision).Digest == former.Digest {
		return history
	}

	return enter(history, former)
}

// ended is how the action that has created a revision has ended, or that the revision has failed later.
func ended(a state.Announcement) Change {
	return func(s v1alpha2.ProviderStatus) v1alpha2.ProviderStatus {
		revision, _ := Known(&s, a.Revision, a.Digest)
		revision.Number, revision.Status = a.Revision, a.Status
		revision.Failure = a.Failure
		revision.Changed = time.Time{} // its record tells the time once that is written

		return Marks(revision, a.Digest)(s)
	}
}

// Marks is that something has changed of a revision, whose record has the digest. It does nothing if the status does
// not know the revision.
func Marks(revision state.Revision, digest string) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		if _, exists := Known(s, revision.Number, digest); !exists {
			return
		}

		entry := entryIn(s.History, int64(revision.Number))
		entry.Status = string(revision.Status)
		enterKnown(&entry, digest, revision)
		s.History = enter(s.History, entry)

		if s.Announced != nil && s.Announced.Revision == entry.Revision {
			s.Announced = nil
		}
	})
}

// Has is which objects the release has, or may have.
func Has(objects []object.Key) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.Inventory = inventory.Entries(objects) })
}

// Begins announces a change to a version that is about to create a revision, so that other resources wait for it. The
// announcement lasts until the revision is announced with its digest, or else until the reconcile ends.
func Begins(first bool, revision int, version string) Change {
	announced := &v1alpha2.AnnouncedRevision{Action: v1alpha2.ReleaseUpgrade, Revision: int64(revision)}
	if first {
		announced.Action = v1alpha2.ReleaseInstall
	}

	return change(func(s *v1alpha2.ProviderStatus) {
		s.DesiredVersion = version

		// The record of another one may exist, which only this digest confirms.
		if s.Announced == nil || s.Announced.Digest == "" {
			s.Announced = announced
		}
	})
}

// All makes all changes.
func All(changes ...Change) Change {
	return func(status v1alpha2.ProviderStatus) v1alpha2.ProviderStatus {
		for _, change := range changes {
			status = change(status)
		}

		return status
	}
}

// NotCreated is that the announced revision was not created after all.
func NotCreated() Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.Announced = nil })
}

// InstallsAgain is that what was known of an earlier release is obsolete.
func InstallsAgain() Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.Release = nil })
}

// Upgrades announces an automatic upgrade.
func Upgrades(last v1alpha2.AutomaticUpgrade) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		s.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Last: &last}
	})
}

// WillUpgrade is the automatic upgrade that follows; nil for none.
func WillUpgrade(pending *v1alpha2.PendingUpgrade) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		switch {
		case s.AutomaticUpgrade != nil:
			s.AutomaticUpgrade.Pending = pending
		case pending != nil:
			s.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Pending: pending}
		}
	})
}

// LeftCluster is that the provider is installed into another cluster than before.
func LeftCluster() Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		s.Release = nil
		s.Announced = nil
		s.Inventory = nil
		s.History = nil
		s.InstalledVersion = nil
	})
}

// LeftRelease returns the event about a release in a cluster that was left.
func LeftRelease(former v1alpha2.ReleaseStatus) []Event {
	return warn(v1alpha2.ReleaseKeptReason, "Reconcile", fmt.Sprintf(
		"The provider is installed into another cluster than before; release %s/%s is kept in the former one, whose "+
			"namespace kube-system has the UID %s", former.Namespace, former.Name, former.ClusterUID))
}

// Doing is what a reconcile is doing, or waits for. Ready stays as it is unless there was none, or the provider is
// not ready until this ends.
func Doing(message string, ready bool, generation int64, now time.Time) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		written := &conditions{list: s.Conditions, generation: generation, now: now}
		written.remove(v1alpha2.StalledCondition)
		written.markTrue(v1alpha2.ReconcilingCondition, v1alpha2.ProgressingReason, "%s", message)

		if !ready || written.get(v1alpha2.ReadyCondition).Type == "" {
			written.markFalse(v1alpha2.ReadyCondition, v1alpha2.ProgressingReason, "%s", message)
		}

		s.Conditions = written.list
	})
}
