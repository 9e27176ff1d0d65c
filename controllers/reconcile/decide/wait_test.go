package decide

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// noon is when the upgrades of these tests are considered.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// patient is an upgrade that waits an hour to soak, and 5 minutes for others.
func patient() Upgrading {
	return Upgrading{Soak: time.Hour, Timeout: 5 * time.Minute, Now: noon}
}

// upgradedAgo is an automatic upgrade of another provider to v1.0.1.
func upgradedAgo(ago time.Duration, result v1alpha2.UpgradeResult) OtherUpgrade {
	return OtherUpgrade{
		Provider: "InfrastructureProvider there/other", Namespace: "there",
		Last: v1alpha2.AutomaticUpgrade{Version: "v1.0.1", Time: metav1.NewTime(noon.Add(-ago)), Result: result},
	}
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

	blocked := func(other OtherUpgrade) OtherUpgrade {
		other.Blocked = true
		return other
	}

	for name, test := range map[string]struct {
		other OtherUpgrade
		want  types.GomegaMatcher
	}{
		"none":                      {OtherUpgrade{}, BeNil()},
		"one in progress":           {upgradedAgo(time.Minute, progressing), beWait(healthy, time.Time{})},
		"one in progress, blocked":  {blocked(upgradedAgo(time.Minute, progressing)), BeNil()},
		"one for too long":          {upgradedAgo(5*time.Minute, progressing), BeNil()},
		"one that failed":           {upgradedAgo(time.Minute, v1alpha2.UpgradeFailed), BeNil()},
		"one that soaks":            {upgradedAgo(59*time.Minute, succeeded), beWait(soaks, noon.Add(time.Minute))},
		"one that soaks, and stops": {blocked(upgradedAgo(59*time.Minute, succeeded)), beWait(soaks, noon.Add(time.Minute))},
		"one that has soaked":       {upgradedAgo(time.Hour, succeeded), BeNil()},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(patient().waitForLast(test.other)).To(test.want)
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
		choice   = Choice{Range: "~1.0", Mode: v1alpha2.UpgradePatch, Installed: "v1.0.0"}
		offered  = []v1alpha2.AvailableUpgrade{{Version: "v1.0.1"}}
	)

	follows := func(earliest time.Time) CoreUpgrade {
		return CoreUpgrade{Possible: true, Choice: choice, Offered: offered, Earliest: earliest}
	}
	prevented := follows(time.Time{})
	prevented.Prevented = "v1.0.1"

	for name, test := range map[string]struct {
		core CoreUpgrade
		// since is since when the upgrade waits for core.
		since time.Time
		want  types.GomegaMatcher
	}{
		"it may not follow":     {CoreUpgrade{Choice: choice, Offered: offered, Looking: true}, before, BeNil()},
		"nothing newer":         {CoreUpgrade{Possible: true, Choice: choice}, before, BeNil()},
		"its source is asked":   {CoreUpgrade{Possible: true, Looking: true}, before, beWait(looking, time.Time{})},
		"its source is silent":  {CoreUpgrade{Possible: true, Looking: true}, tooLong, BeNil()},
		"an upgrade":            {follows(time.Time{}), before, beWait(next, time.Time{})},
		"one that is prevented": {prevented, before, BeNil()},
		"its source has become silent": {
			CoreUpgrade{Possible: true, Looking: true, Choice: choice, Offered: offered}, tooLong, BeNil(),
		},
		"an upgrade that does not start": {follows(time.Time{}), tooLong, BeNil()},
		"an upgrade in a window": {
			follows(inAnHour), tooLong, beWait(windowed, inAnHour),
		},
		"an upgrade in a window that is open": {
			follows(before), before, beWait(next, time.Time{}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			u := patient()
			u.Core = test.core
			since := map[string]time.Time{forCore: test.since}

			g.Expect(u.waitForCore(since)).To(test.want)

			due := test.core.Possible && test.core.isDue(noon)
			g.Expect(since).To(HaveLen(map[bool]int{true: 1}[due]), "the time counts while the upgrade is due")
		})
	}
}

// TestOneUpgradeAfterTheOther has a provider that waits since noon, and another one that is upgraded again each time.
func TestOneUpgradeAfterTheOther(t *testing.T) {
	const total = time.Hour + 5*time.Minute

	for name, test := range map[string]struct {
		trusted bool
		after   time.Duration
		want    types.GomegaMatcher // when the wait ends
	}{
		"of another namespace":                  {false, time.Minute, Equal(noon.Add(time.Hour + time.Minute))},
		"of another namespace, near the end":    {false, total - time.Minute, Equal(noon.Add(total))},
		"of another namespace, after that time": {false, total, BeZero()},
		"of the same namespace, or core":        {true, total, Equal(noon.Add(total + time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			since := map[string]time.Time{}
			ends := func(after time.Duration) time.Time {
				u := patient()
				u.Now = noon.Add(after)
				other := upgradedAgo(-after, v1alpha2.UpgradeSucceeded)
				other.Trusted = test.trusted

				found := u.waitForUpgrade(other, since)
				if found == nil {
					return time.Time{}
				}

				g.Expect(found.until).To(Equal(found.limit))

				return found.limit
			}

			g.Expect(ends(0)).To(Equal(noon.Add(time.Hour)))
			g.Expect(ends(test.after)).To(test.want)

			clear(since)
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

// TestWaitsFor: the status names another provider only while its upgrade is not done.
func TestWaitsFor(t *testing.T) {
	g := NewWithT(t)
	u := patient()
	other := upgradedAgo(time.Second, v1alpha2.UpgradeProgressing)
	g.Expect(u.waitForLast(other).pending("v1").WaitsFor).To(Equal(other.Provider))
	g.Expect(u.waitForLast(upgradedAgo(time.Second, v1alpha2.UpgradeSucceeded)).pending("v1").WaitsFor).To(BeEmpty(),
		"its own soakTime")

	u.Core = CoreUpgrade{Provider: "core", Possible: true, Looking: true}
	g.Expect(u.waitForCore(map[string]time.Time{}).pending("v1").WaitsFor).To(Equal("core"))
}

// TestPatience: a provider whose own timeout is very long waits for others for an hour.
func TestPatience(t *testing.T) {
	g := NewWithT(t)

	u := patient()
	g.Expect(u.waitForLast(upgradedAgo(5*time.Minute, v1alpha2.UpgradeProgressing))).To(BeNil(), "its own timeout")

	u.Timeout = 80_000 * time.Hour
	g.Expect(u.waitForLast(upgradedAgo(59*time.Minute, v1alpha2.UpgradeProgressing))).NotTo(BeNil())
	g.Expect(u.waitForLast(upgradedAgo(time.Hour, v1alpha2.UpgradeProgressing))).To(BeNil())

	u.Core = CoreUpgrade{Provider: "core", Possible: true, Looking: true}
	g.Expect(u.waitForCore(map[string]time.Time{forCore: noon.Add(-59 * time.Minute)})).NotTo(BeNil())
	g.Expect(u.waitForCore(map[string]time.Time{forCore: noon.Add(-time.Hour)})).To(BeNil())

	since := map[string]time.Time{"namespace there": noon.Add(-u.Soak - time.Hour)}
	g.Expect(u.waitForUpgrade(upgradedAgo(time.Minute, v1alpha2.UpgradeProgressing), since)).To(BeNil())
}
