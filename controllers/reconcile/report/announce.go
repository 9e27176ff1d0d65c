package report

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// Enters is what is about to be written of a revision of the release: that it is created, or how that has ended. A
// record whose resource does not know of it proves nothing. The objects are those that the release may have from then
// on; nil if these are as before.
func Enters(revision state.Revision, objects []object.Key) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		if objects != nil {
			s.Inventory = inventory.Entries(objects)
		}

		entry, before := revision.ReleaseRevision, entryIn(s.History, revision.Number)
		begins := revision.Status.Pending()

		// Its record tells the time once that is written. An attempt that is resumed was created before.
		entry.Time, entry.LastTransitionTime = metav1.Time{}, metav1.Time{}
		if !begins || before.Failure == v1alpha2.FailureUnavailable {
			entry.Time = before.Time
		}

		// The records of revisions after the next one were deleted.
		if begins {
			s.History = slices.DeleteFunc(s.History, func(r v1alpha2.ReleaseRevision) bool {
				return r.Number > entry.Number
			})
		}

		s.History = enter(s.History, entry)
	})
}

// Marks is that something has changed of a revision. It does nothing if the status does not know the revision.
func Marks(revision state.Revision) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		if known, exists := Known(s, revision.Number); exists && known.Digest == revision.Digest {
			s.History = enter(s.History, revision.ReleaseRevision)
		}
	})
}

// Adopts is how many objects became part of the release with a revision.
func Adopts(revision, objects int) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		if entry, exists := Known(s, revision); exists {
			entry.Adopted = objects
			s.History = enter(s.History, entry)
		}
	})
}

// Has is which objects the release has, or may have.
func Has(objects []object.Key) Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.Inventory = inventory.Entries(objects) })
}

// Begins announces a change to a version that is about to create a revision, so that other resources wait for it. Its
// entry gets a digest before the revision is created, or else lasts until the reconcile ends.
func Begins(first bool, revision int, version string) Change {
	status := v1alpha2.RevisionPendingUpgrade
	if first {
		status = v1alpha2.RevisionPendingInstall
	}

	return change(func(s *v1alpha2.ProviderStatus) {
		s.DesiredVersion = version

		// A record may exist, which only its digest confirms.
		entry := entryIn(s.History, revision)
		if entry.Digest == "" {
			entry.Version, entry.Status = version, status
			s.History = enter(s.History, entry)
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

// InstallsAgain is that what was known of an earlier release is obsolete.
func InstallsAgain() Change {
	return change(func(s *v1alpha2.ProviderStatus) { s.Release = nil })
}

// Existed is that the release existed, also if another program has uninstalled it while it was first installed.
func Existed(release types.NamespacedName, clusterUID string) Change {
	return change(func(s *v1alpha2.ProviderStatus) {
		s.Release = &v1alpha2.ReleaseStatus{Name: release.Name, Namespace: release.Namespace, ClusterUID: clusterUID}
	})
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
