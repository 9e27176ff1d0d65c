package state

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

var core = types.NamespacedName{Namespace: "ns", Name: "core"}

func TestDetermine(t *testing.T) {
	rules := Rules{LockTimeout: 5 * time.Minute, Now: noon}

	newest := func(status Status, changes ...change) History {
		r := Revision{
			Number:       3,
			Status:       status,
			Origin:       3,
			Digest:       "wanted",
			Created:      noon.Add(-2 * time.Minute),
			Changed:      noon.Add(-time.Minute),
			RecordDigest: "v1:known",
		}
		for _, c := range changes {
			c(&r)
		}

		return History{Release: core, Revisions: []Revision{r, {Number: 2, Status: StatusSuperseded}}}
	}
	busy := func(h History) History { h.Busy = true; return h }

	otherDigest := func(r *Revision) { r.Digest = "other" }
	byOthers := func(r *Revision) { r.Origin, r.Digest = 0, "" }
	inherited := func(r *Revision) { r.Origin, r.Digest = 2, "" }
	old := func(r *Revision) { r.Created = noon.Add(-61 * time.Minute) }
	stale := func(r *Revision) { r.Changed = noon.Add(-6 * time.Minute) }

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
		"own action running": {
			busy(newest(StatusPendingUpgrade)), Locked, "is running",
		},
		"own action running, nothing written": {
			busy(History{}), Locked, "is running",
		},
		"deployed": {
			newest(StatusDeployed), InSync, "revision 3 is deployed",
		},
		"deployed from something else": {
			newest(StatusDeployed, otherDigest), OutOfSync, "another chart or other values",
		},
		"failed": {
			newest(StatusFailed), Failed, "revision 3 failed",
		},
		"failed with something else": {
			newest(StatusFailed, otherDigest), OutOfSync, "another chart",
		},
		"superseded by a revision that is gone": {
			newest(StatusSuperseded), OutOfSync, "although it is the newest",
		},
		"unknown status": {
			newest("odd"), OutOfSync, `"odd"`,
		},
		"left pending in an installation": {
			newest(StatusPendingInstall), Interrupted, "revision 3 was left pending-install",
		},
		"left pending in a rollback": {
			newest(StatusPendingRollback), Interrupted, "revision 3 was left pending-rollback",
		},
		"helm upgrade running": {
			newest(StatusPendingUpgrade, inherited), Locked, "helm rollback core -n ns",
		},
		"helm install running": {
			newest(StatusPendingInstall, byOthers), Locked, "helm uninstall core -n ns",
		},
		"helm upgrade died": {
			newest(StatusPendingUpgrade, inherited, stale), Interrupted, "wrote to it last at 2026-01-01T11:54:00Z",
		},
		"pending, and renewed again and again": {
			newest(StatusPendingUpgrade, inherited, old), Interrupted, "wrote to it last at 2026-01-01T11:59:00Z",
		},
		"uninstall of an old revision running": {
			newest(StatusUninstalling, old), Locked, "2026-01-01T12:04:00Z",
		},
		"uninstall of a revision that is not known to be the resource's, renewed again and again": {
			newest(StatusUninstalling, old, forged), Interrupted, "left revision 3 uninstalling",
		},
		"uninstall running": {
			newest(StatusUninstalling), Locked, "2026-01-01T12:04:00Z",
		},
		"uninstall died": {
			newest(StatusUninstalling, stale), Interrupted, "left revision 3 uninstalling",
		},
		"uninstalled, history kept": {
			newest(StatusUninstalled), Uninstalled, "history kept",
		},
		"helm upgrade or rollback": {
			newest(StatusDeployed, inherited), Unmanaged, "from revision 2",
		},
		"failed helm upgrade": {
			newest(StatusFailed, inherited), Unmanaged, "from revision 2",
		},
		"installed by another program": {
			newest(StatusDeployed, byOthers), Unmanaged, "created by another program",
		},
		"deployed, but not known to be the resource's": {
			newest(StatusDeployed, forged), Unconfirmed, "revision 3 is not known to be this resource's",
		},
		"uninstalled, but not known to be the resource's": {
			newest(StatusUninstalled, forged), Unconfirmed, "revision 3 is not known to be this resource's",
		},
		"helm upgrade running over a revision that is not known to be the resource's": {
			newest(StatusPendingUpgrade, inherited, forged), Locked, "another program is changing release ns/core",
		},
		"unreadable": {
			newest(StatusDeployed, unreadable), Corrupt, "cannot be read",
		},
		"unreadable and pending": {
			newest(StatusPendingUpgrade, unreadable), Corrupt, "cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			observed := Determine(tt.history, "wanted", rules)
			g.Expect(observed.State).To(Equal(tt.want))
			g.Expect(observed.Message).To(ContainSubstring(tt.message))

			newest, _ := tt.history.Newest()
			g.Expect(observed.Revision).To(Equal(newest))

			lockedByOthers := observed.State == Locked && !tt.history.Busy
			g.Expect(observed.Until.IsZero()).To(Equal(!lockedByOthers))
		})
	}
}
