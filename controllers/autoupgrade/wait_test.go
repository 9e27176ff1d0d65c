package autoupgrade

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// noon is when the upgrades of these tests are considered: those in waitsAtNoon wait an hour to soak, and 5 minutes for
// others.
var (
	noon        = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	waitsAtNoon = patience{soak: time.Hour, timeout: 5 * time.Minute, now: noon}
)

// change changes a provider.
type change func(v1alpha2.Provider)

// upgradedAgo gives a provider an automatic upgrade to v1.0.1.
func upgradedAgo(ago time.Duration, result v1alpha2.UpgradeResult) change {
	return func(p v1alpha2.Provider) {
		p.GetStatus().AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Last: &v1alpha2.AutomaticUpgrade{
			Version: "v1.0.1", Time: metav1.NewTime(noon.Add(-ago)), Result: result,
		}}
	}
}

// is sets a condition of a provider.
func is(condition string, status metav1.ConditionStatus, reason string) change {
	return func(p v1alpha2.Provider) {
		conditions.Set(p, &metav1.Condition{Type: condition, Status: status, Reason: reason})
	}
}

// changed returns the provider with changes.
func changed[P v1alpha2.Provider](p P, changes ...change) P {
	for _, c := range changes {
		c(p)
	}

	return p
}

func newProvider(changes ...change) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "there", Name: "other"}}
	return changed(p, changes...)
}

// halts are changes after which an upgrade does not continue by itself.
var halts = map[string]change{
	"being deleted": func(p v1alpha2.Provider) { p.SetDeletionTimestamp(&metav1.Time{Time: noon}) },
	"suspended":     func(p v1alpha2.Provider) { p.GetSpec().Suspend = true },
	"paused":        func(p v1alpha2.Provider) { p.GetSpec().Paused = true },
	"rolled back by its resource": func(p v1alpha2.Provider) {
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(int64(1))}
	},
	"held, and healthy":         is(v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.ExternalChangeReason),
	"uninstalled by helm":       is(v1alpha2.ReadyCondition, metav1.ConditionFalse, v1alpha2.ExternalChangeReason),
	"in a cluster out of reach": is(v1alpha2.ReadyCondition, metav1.ConditionFalse, v1alpha2.ClusterUnreachableReason),
	"refused": is(v1alpha2.PreflightCheckCondition, metav1.ConditionFalse,
		v1alpha2.MoreThanOneProviderInstanceExistsReason),
	"stalled": is(v1alpha2.StalledCondition, metav1.ConditionTrue, v1alpha2.InstallFailedReason),
}

// beWait matches what the status shows of a wait: its message, and when it can end at the earliest.
func beWait(message string, notBefore time.Time) types.GomegaMatcher {
	matchers := []types.GomegaMatcher{HaveField("Message", message)}

	if notBefore.IsZero() {
		matchers = append(matchers, HaveField("NotBefore", BeNil()))
	} else {
		matchers = append(matchers, HaveField("NotBefore.Time", BeTemporally("==", notBefore)))
	}

	return WithTransform(func(w *wait) *v1alpha2.PendingUpgrade {
		if w == nil {
			return &v1alpha2.PendingUpgrade{Message: "nothing"}
		}

		return w.pending("v1.0.1")
	}, And(matchers...))
}

func TestWaitForUpgrade(t *testing.T) {
	const (
		progressing = v1alpha2.UpgradeProgressing
		succeeded   = v1alpha2.UpgradeSucceeded
		healthy     = "waits until the automatic upgrade of InfrastructureProvider there/other to v1.0.1 is healthy, " +
			"until 2026-11-22 12:04 UTC at the latest"
		soaks = "waits for spec.upgradePolicy.soakTime after the automatic upgrade of InfrastructureProvider there/other " +
			"to v1.0.1, until 2026-11-22 12:01 UTC"
	)

	for name, test := range map[string]struct {
		other v1alpha2.Provider
		want  types.GomegaMatcher
	}{
		"none":             {newProvider(), BeNil()},
		"one in progress":  {newProvider(upgradedAgo(time.Minute, progressing)), beWait(healthy, time.Time{})},
		"one for too long": {newProvider(upgradedAgo(5*time.Minute, progressing)), BeNil()},
		"one with a timeout of its own": {newProvider(upgradedAgo(5*time.Minute, progressing),
			func(p v1alpha2.Provider) {
				p.GetSpec().Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 80000 * time.Hour}}
			}), BeNil()},
		"one that failed":     {newProvider(upgradedAgo(time.Minute, v1alpha2.UpgradeFailed)), BeNil()},
		"one that soaks":      {newProvider(upgradedAgo(59*time.Minute, succeeded)), beWait(soaks, noon.Add(time.Minute))},
		"one that has soaked": {newProvider(upgradedAgo(time.Hour, succeeded)), BeNil()},
		"one that soaks, paused": {
			newProvider(upgradedAgo(59*time.Minute, succeeded), halts["paused"]), beWait(soaks, noon.Add(time.Minute)),
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(waitsAtNoon.forUpgrade(test.other)).To(test.want) })
	}

	for name, halt := range halts {
		t.Run("one in progress, "+name, func(t *testing.T) {
			other := newProvider(upgradedAgo(time.Minute, progressing), halt)
			NewWithT(t).Expect(waitsAtNoon.forUpgrade(other)).To(BeNil())
		})
	}
}

func TestWaitForCore(t *testing.T) {
	const (
		looking = "waits until the source of core has answered, which is upgraded first, " +
			"until 2026-11-22 12:04 UTC at the latest"
		next     = "waits for the automatic upgrade of core to v1.0.1, until 2026-11-22 12:04 UTC at the latest"
		windowed = "waits for the automatic upgrade of core to v1.0.1, until 2026-11-22 13:05 UTC at the latest"
	)

	var (
		before   = noon.Add(-time.Minute)
		tooLong  = noon.Add(-5 * time.Minute)
		inAnHour = noon.Add(time.Hour)
	)

	for name, test := range map[string]struct {
		core coreUpgrade
		want types.GomegaMatcher
	}{
		"nothing newer":                {coreUpgrade{since: before}, BeNil()},
		"its source is asked":          {coreUpgrade{looking: true, since: before}, beWait(looking, time.Time{})},
		"its source is silent":         {coreUpgrade{looking: true, since: tooLong}, BeNil()},
		"its source has become silent": {coreUpgrade{looking: true, next: "v1.0.1", since: tooLong}, BeNil()},
		"an upgrade":                   {coreUpgrade{next: "v1.0.1", since: before}, beWait(next, time.Time{})},
		"an upgrade that does not start": {
			coreUpgrade{next: "v1.0.1", since: tooLong}, BeNil(),
		},
		"an upgrade in a window": {
			coreUpgrade{next: "v1.0.1", earliest: inAnHour}, beWait(windowed, inAnHour),
		},
		"an upgrade in a window that is open": {
			coreUpgrade{next: "v1.0.1", earliest: before, since: before}, beWait(next, time.Time{}),
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(waitsAtNoon.forCore(test.core)).To(test.want) })
	}
}

func TestUpgradeOfCoreMayFollow(t *testing.T) {
	core := func(changes ...change) v1alpha2.Provider {
		p := changed(&v1alpha2.CoreProvider{}, changes...)
		p.Status.InstalledVersion = new("v1.0.0")

		return p
	}

	g := NewWithT(t)
	g.Expect(mayFollow(core())).To(BeTrue())
	g.Expect(mayFollow(core(upgradedAgo(time.Hour, v1alpha2.UpgradeSucceeded)))).To(BeTrue())
	g.Expect(mayFollow(core(upgradedAgo(time.Hour, v1alpha2.UpgradeProgressing)))).To(BeFalse(), "it is in progress")
	g.Expect(mayFollow(&v1alpha2.CoreProvider{})).To(BeFalse(), "it is not installed")

	for name, halt := range halts {
		g.Expect(mayFollow(core(halt))).To(BeFalse(), "it is %s", name)
	}
}

func TestEarliestUpgradeOfCore(t *testing.T) {
	opening := Opening{From: noon}
	core := &v1alpha2.CoreProvider{}
	soaks := func(until time.Time) {
		core.Status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
			Pending: &v1alpha2.PendingUpgrade{NotBefore: &metav1.Time{Time: until}},
		}
	}

	g := NewWithT(t)
	g.Expect(earliest(core, opening)).To(Equal(noon))
	soaks(noon.Add(-time.Hour))
	g.Expect(earliest(core, opening)).To(Equal(noon))
	soaks(noon.Add(time.Hour))
	g.Expect(earliest(core, opening)).To(Equal(noon.Add(time.Hour)))
}

// TestOneUpgradeAfterTheOther has a provider that waits since noon, and another one that is upgraded again each time.
func TestOneUpgradeAfterTheOther(t *testing.T) {
	const total = time.Hour + 5*time.Minute

	in := func(namespace string) change { return func(p v1alpha2.Provider) { p.SetNamespace(namespace) } }
	waiting := newProvider(in("here"))

	for name, test := range map[string]struct {
		namespace string
		isCore    bool
		after     time.Duration
		want      types.GomegaMatcher // when the wait ends
	}{
		"of another namespace":                  {"there", false, time.Minute, Equal(noon.Add(time.Hour + time.Minute))},
		"of another namespace, near the end":    {"there", false, total - time.Minute, Equal(noon.Add(total))},
		"of another namespace, after that time": {"there", false, total, BeZero()},
		"of the same namespace":                 {"here", false, total, Equal(noon.Add(total + time.Hour))},
		"of core":                               {"there", true, total, Equal(noon.Add(total + time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &Selector{}
			ends := func(after time.Duration) time.Time {
				p := waitsAtNoon
				p.now = noon.Add(after)
				other := newProvider(in(test.namespace), upgradedAgo(-after, v1alpha2.UpgradeSucceeded))

				found := s.waitForUpgrade(waiting, other, test.isCore, p)
				if found == nil {
					return time.Time{}
				}

				g.Expect(found.until).To(Equal(found.limit))

				return found.limit
			}

			g.Expect(ends(0)).To(Equal(noon.Add(time.Hour)))
			g.Expect(ends(test.after)).To(test.want)

			s.delays.endAll(waiting.GetUID())
			g.Expect(ends(test.after)).To(Equal(noon.Add(test.after+time.Hour)), "the next upgrade waits again")
		})
	}
}

func TestLongestWait(t *testing.T) {
	g := NewWithT(t)
	short, long := &wait{limit: noon}, &wait{limit: noon.Add(time.Hour)}
	none := (*wait)(nil)

	g.Expect(none.or(nil)).To(BeNil())
	g.Expect(none.or(short)).To(BeIdenticalTo(short))
	g.Expect(short.or(nil)).To(BeIdenticalTo(short))
	g.Expect(short.or(long)).To(BeIdenticalTo(long))
	g.Expect(long.or(short)).To(BeIdenticalTo(long))
}

func TestWaitToStart(t *testing.T) {
	g := NewWithT(t)
	s := &Selector{}
	named := func(uid string) v1alpha2.Provider {
		return newProvider(func(p v1alpha2.Provider) { p.SetUID(ktypes.UID(uid)) })
	}
	one, two := named("one"), named("two")
	at := func(after time.Duration) patience { return patience{timeout: time.Minute, now: noon.Add(after)} }

	s.Cluster = v1alpha2.Cluster

	g.Expect(s.waitToStart(one, at(0))).To(BeNil())
	g.Expect(s.waitToStart(two, at(0))).To(beWait(
		"waits for another automatic upgrade, which is starting, until 2026-11-22 12:01 UTC at the latest", time.Time{}))
	g.Expect(s.waitToStart(two, at(59*time.Second))).NotTo(BeNil())
	g.Expect(s.waitToStart(two, at(time.Minute))).To(BeNil())

	s.Release(one.GetUID())
	g.Expect(s.waitToStart(two, at(2*time.Minute))).To(BeNil())
	s.Release(two.GetUID())
	g.Expect(s.waitToStart(one, at(2*time.Minute))).To(BeNil())
	g.Expect(s.waitToStart(two, at(2*time.Minute))).NotTo(BeNil(), "the time before counts no more")
}
