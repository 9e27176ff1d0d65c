package release

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	rules := Rules{Holder: "me", ForeignGrace: 5 * time.Minute, Now: now}
	revision := func(status Status, change ...func(*Revision)) Observation {
		r := Revision{Number: 3, Status: status, Origin: 3, Holder: "me", Digest: "wanted", Changed: now.Add(-time.Minute)}
		for _, c := range change {
			c(&r)
		}

		return Observation{Namespace: "ns", Name: "core", Revisions: []Revision{r, {Number: 2, Status: StatusSuperseded}}}
	}
	busy := func(o Observation) Observation { o.Busy = true; return o }
	otherDigest := func(r *Revision) { r.Digest = "other" }
	otherHolder := func(r *Revision) { r.Holder = "another" }
	foreign := func(r *Revision) { r.Origin, r.Holder, r.Digest = 0, "", "" }
	inherited := func(r *Revision) { r.Origin, r.Holder, r.Digest = 2, "", "" }
	stale := func(r *Revision) { r.Changed = now.Add(-6 * time.Minute) }
	unreadable := func(r *Revision) { r.Unreadable = true }

	for name, tt := range map[string]struct {
		observed Observation
		want     Condition
		message  string
	}{
		"no revision":                             {Observation{}, Absent, "no release"},
		"an action of ours runs":                  {busy(revision(StatusPendingUpgrade)), Pending, "is running"},
		"an action of ours runs, nothing written": {busy(Observation{}), Pending, "is running"},
		"deployed from what is desired":           {revision(StatusDeployed), InSync, "revision 3"},
		"the same by another holder":              {revision(StatusDeployed, otherHolder), InSync, "revision 3"},
		"deployed from something else":            {revision(StatusDeployed, otherDigest), OutOfSync, "another chart or other values"},
		"failed with what is desired":             {revision(StatusFailed), Failed, "revision 3 failed"},
		"failed with something else":              {revision(StatusFailed, otherDigest), OutOfSync, "another chart"},
		"its successor's record is gone":          {revision(StatusSuperseded), OutOfSync, "though it is the newest"},
		"a status that Helm does not know":        {revision("odd"), OutOfSync, `"odd"`},
		"left pending by this process":            {revision(StatusPendingInstall), Abandoned, "could not record its end"},
		"left pending by a dead process":          {revision(StatusPendingUpgrade, otherHolder), Abandoned, `"another", which is gone`},
		"left pending in a rollback":              {revision(StatusPendingRollback, otherHolder), Abandoned, "pending-rollback"},
		"a person's upgrade runs":                 {revision(StatusPendingUpgrade, inherited), Pending, "helm rollback core -n ns"},
		"a person's install runs":                 {revision(StatusPendingInstall, foreign), Pending, "helm uninstall core -n ns"},
		"a person's upgrade has died":             {revision(StatusPendingUpgrade, inherited, stale), Abandoned, "has not been heard of"},
		"an uninstall runs":                       {revision(StatusUninstalling), Pending, "2026-01-01T12:04:00Z"},
		"an uninstall has died":                   {revision(StatusUninstalling, stale), Abandoned, "left revision 3 uninstalling"},
		"uninstalled, history kept":               {revision(StatusUninstalled), Uninstalled, "history kept"},
		"a person's upgrade or rollback":          {revision(StatusDeployed, inherited), Foreign, "from revision 2"},
		"a person's that failed":                  {revision(StatusFailed, inherited), Foreign, "from revision 2"},
		"another program's release":               {revision(StatusDeployed, foreign), Foreign, "made by another program"},
		"a record that cannot be read":            {revision(StatusDeployed, unreadable), Corrupt, "cannot be read"},
		"such a record, left pending":             {revision(StatusPendingUpgrade, unreadable), Corrupt, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			state := Decide(tt.observed, "wanted", rules)
			g.Expect(state.Condition).To(Equal(tt.want))
			g.Expect(state.Message).To(ContainSubstring(tt.message))
			newest, _ := tt.observed.Newest()
			g.Expect(state.Revision).To(Equal(newest))
			waitsForOthers := state.Condition == Pending && !tt.observed.Busy
			g.Expect(state.Until.IsZero()).To(Equal(!waitsForOthers))
		})
	}
}
