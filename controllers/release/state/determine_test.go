package state

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var core = types.NamespacedName{Namespace: "ns", Name: "core"}

func TestDetermine(t *testing.T) {
	rules := Rules{LockTimeout: 5 * time.Minute, Now: noon}

	newest := func(status v1alpha2.RevisionStatus, changes ...change) History {
		r := Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{
				Number: 3, Status: status, ContentDigest: "wanted", Time: metav1.NewTime(noon.Add(-2 * time.Minute)),
				LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute)), Digest: "v1:known",
			},
			Origin: 3,
		}
		for _, c := range changes {
			c(&r)
		}

		former := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: v1alpha2.RevisionSuperseded}}

		return History{Release: core, Revisions: []Revision{r, former}}
	}
	otherDigest := func(r *Revision) { r.ContentDigest = "other" }
	byOthers := func(r *Revision) { r.Origin, r.ContentDigest = 0, "" }
	inherited := func(r *Revision) { r.Origin, r.ContentDigest = 2, "" }
	old := func(r *Revision) { r.Time.Time = noon.Add(-61 * time.Minute) }
	recent := func(r *Revision) { r.Time.Time = noon.Add(-59 * time.Minute) }
	stale := func(r *Revision) { r.LastTransitionTime.Time = noon.Add(-6 * time.Minute) }

	for name, tt := range map[string]struct {
		history History
		want    State
		message string
	}{
		"no revision": {
			History{Release: core}, Absent, "release ns/core does not exist",
		},
		"objects without a revision": {
			History{Release: core, Lost: true}, RecordsLost, "release ns/core has objects but no history",
		},
		"deployed": {
			newest(v1alpha2.RevisionDeployed), InSync, "revision 3 is deployed",
		},
		"deployed from something else": {
			newest(v1alpha2.RevisionDeployed, otherDigest), OutOfSync, "another chart or other values",
		},
		"failed": {
			newest(v1alpha2.RevisionFailed), Failed, "revision 3 failed",
		},
		"failed with something else": {
			newest(v1alpha2.RevisionFailed, otherDigest), OutOfSync, "another chart",
		},
		"superseded by a revision that is gone": {
			newest(v1alpha2.RevisionSuperseded), OutOfSync, "although it is the newest",
		},
		"unknown status": {
			newest("odd"), OutOfSync, `"odd"`,
		},
		"left pending in an installation": {
			newest(v1alpha2.RevisionPendingInstall), Interrupted, "revision 3 was left pending-install",
		},
		"left pending in a rollback": {
			newest(v1alpha2.RevisionPendingRollback), Interrupted, "revision 3 was left pending-rollback",
		},
		"helm upgrade running": {
			newest(v1alpha2.RevisionPendingUpgrade, inherited), Locked, "helm rollback core -n ns",
		},
		"helm install running": {
			newest(v1alpha2.RevisionPendingInstall, byOthers), Locked, "helm uninstall core -n ns",
		},
		"helm upgrade died": {
			newest(v1alpha2.RevisionPendingUpgrade, inherited, stale), Interrupted, "wrote to it last at 2026-01-01T11:54:00Z",
		},
		"pending, and renewed again and again": {
			newest(v1alpha2.RevisionPendingUpgrade, inherited, old), Interrupted, "wrote to it last at 2026-01-01T11:59:00Z",
		},
		"pending, and renewed for less than an hour": {
			newest(v1alpha2.RevisionPendingUpgrade, inherited, recent), Locked, "2026-01-01T12:01:00Z",
		},
		"uninstall of an old revision running": {
			newest(v1alpha2.RevisionUninstalling, old), Locked, "2026-01-01T12:04:00Z",
		},
		"uninstall of a revision that is not known to be the resource's, renewed again and again": {
			newest(v1alpha2.RevisionUninstalling, old, forged), Interrupted, "left revision 3 uninstalling",
		},
		"uninstall running": {
			newest(v1alpha2.RevisionUninstalling), Locked, "2026-01-01T12:04:00Z",
		},
		"uninstall died": {
			newest(v1alpha2.RevisionUninstalling, stale), Interrupted, "left revision 3 uninstalling",
		},
		"uninstalled, history kept": {
			newest(v1alpha2.RevisionUninstalled), Uninstalled, "history kept",
		},
		"helm upgrade or rollback": {
			newest(v1alpha2.RevisionDeployed, inherited), Unmanaged, "from revision 2",
		},
		"failed helm upgrade": {
			newest(v1alpha2.RevisionFailed, inherited), Unmanaged, "from revision 2",
		},
		"installed by another program": {
			newest(v1alpha2.RevisionDeployed, byOthers), Unmanaged, "created by another program",
		},
		"deployed, but not known to be the resource's": {
			newest(v1alpha2.RevisionDeployed, forged), Unconfirmed, "revision 3 is not known to be this resource's",
		},
		"uninstalled, but not known to be the resource's": {
			newest(v1alpha2.RevisionUninstalled, forged), Unconfirmed, "revision 3 is not known to be this resource's",
		},
		"helm upgrade running over a revision that is not known to be the resource's": {
			newest(v1alpha2.RevisionPendingUpgrade, inherited, forged), Locked, "another program is changing release ns/core",
		},
		"unreadable": {
			newest(v1alpha2.RevisionDeployed, unreadable), Corrupt, "cannot be read",
		},
		"unreadable and pending": {
			newest(v1alpha2.RevisionPendingUpgrade, unreadable), Corrupt, "cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			observed := Determine(tt.history, "wanted", rules)
			g.Expect(observed.State).To(Equal(tt.want))
			g.Expect(observed.Message).To(ContainSubstring(tt.message))

			newest, _ := tt.history.Newest()
			g.Expect(observed.Revision).To(Equal(newest))

			g.Expect(observed.Until.IsZero()).To(Equal(observed.State != Locked))
		})
	}
}
