package decide

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// upgradable is a healthy provider for which the source offers a patch, at noon, after other providers were read.
func upgradable() Upgrading {
	u := patient()
	u.Allowed, u.Answers = true, Answers{ReadOthers: {}}
	u.Range, u.Mode, u.Contract = "~1.0", v1alpha2.UpgradePatch, "v1beta1"
	u.Opening = Opening{Until: noon.Add(time.Hour)}
	u.History, u.Asked = historyOf(healthyAt("v1.0.0", asks)), asks
	u.Offered = []v1alpha2.AvailableUpgrade{{Version: "v1.0.1", Contract: "v1beta1"}}

	return u
}

// TestUpgrade: what each row selects, when it is decided again, and since when the upgrade waits for others.
func TestUpgrade(t *testing.T) {
	var (
		since    = map[string]time.Time{"namespace there": noon.Add(-time.Minute)}
		inADay   = noon.Add(24 * time.Hour)
		nextHour = noon.Add(lookInterval)
		starts   = Selection{Version: "v1.0.1", Automatic: "v1.0.1", From: "v1.0.0"}
		stays    = Selection{Version: "v1.0.0"}
	)

	pending := func(message string, waits map[string]time.Time) Selection {
		selection := stays
		selection.Pending, selection.Waits = &v1alpha2.PendingUpgrade{Version: "v1.0.1", Message: message}, waits

		return selection
	}
	notBefore := func(selection Selection, at time.Time) Selection {
		selection.Pending = wait{message: selection.Pending.Message, until: at}.pending("v1.0.1")
		return selection
	}
	blocked := func(selection Selection) Selection {
		selection.Pending.Blocked = true
		return selection
	}

	var shown []string

	for name, c := range map[string]struct {
		row    string
		change func(*Upgrading)
		want   Selection
		until  time.Time
	}{
		"an upgrade": {"", func(*Upgrading) {}, starts, nextHour},
		"in a window": {
			"", func(u *Upgrading) { u.Windowed = true },
			Selection{Version: "v1.0.1", Automatic: "v1.0.1", From: "v1.0.0", Until: noon.Add(time.Hour)}, nextHour,
		},
		"after others": {
			"", func(u *Upgrading) {
				u.Waits, u.Others = since, []OtherUpgrade{upgradedAgo(2*time.Hour, v1alpha2.UpgradeSucceeded)}
			},
			Selection{Version: "v1.0.1", Automatic: "v1.0.1", From: "v1.0.0", Waits: since}, nextHour,
		},
		"no policy": {
			"without a policy there are no automatic upgrades", func(u *Upgrading) { *u = Upgrading{Waits: since} }, Selection{},
			time.Time{},
		},
		"nothing installed": {
			"a healthy version is followed by a newer one of its range",
			func(u *Upgrading) { u.History = state.History{} }, Selection{}, nextHour,
		},
		"nothing newer": {
			"a healthy version is followed by a newer one of its range",
			func(u *Upgrading) { u.Offered = nil }, stays, nextHour,
		},
		"nothing newer, and a window in a day": {
			"a healthy version is followed by a newer one of its range",
			func(u *Upgrading) { u.Offered, u.Opening = nil, Opening{From: noon.Add(time.Minute)} }, stays,
			noon.Add(time.Minute),
		},
		"a version that has failed": {
			"a healthy version is followed by a newer one of its range",
			func(u *Upgrading) {
				u.History = historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1")),
					healthyAt("v1.0.0", asks))
			},
			stays, nextHour,
		},
		"a check prevents it": {
			"a version that a check prevents is not tried again soon",
			func(u *Upgrading) { u.Waits, u.Prevented = since, Prevented{"v1.0.1", "REGION\nhas no value"} },
			blocked(pending("REGION has no value", nil)), noon.Add(preventedInterval),
		},
		"an obstacle": {
			"a provider that is not as it should be is not upgraded",
			func(u *Upgrading) { u.Waits, u.Obstacle = since, "spec.paused is true" },
			pending("waits because spec.paused is true", since), nextHour,
		},
		"a closed window": {
			"upgrades start in their window",
			func(u *Upgrading) { u.Waits, u.Opening = since, Opening{From: inADay} },
			notBefore(pending("waits for the window, which opens at 2026-11-23 12:00 UTC", since), inADay), nextHour,
		},
		"a source that is asked": {
			"the source has answered", func(u *Upgrading) { u.Waits, u.Looking = since, true },
			pending("waits until the source has answered", since), noon.Add(othersInterval),
		},
		"one that soaks": {
			"upgrades follow each other, that of core first",
			func(u *Upgrading) {
				u.Waits, u.Others = since, []OtherUpgrade{
					upgradedAgo(59*time.Minute, v1alpha2.UpgradeSucceeded), upgradedAgo(30*time.Minute, v1alpha2.UpgradeSucceeded),
				}
			},
			notBefore(pending("waits for spec.upgradePolicy.soakTime after the automatic upgrade of InfrastructureProvider "+
				"there/other to v1.0.1, until 2026-11-22 12:30 UTC", since), noon.Add(30*time.Minute)),
			noon.Add(30 * time.Minute),
		},
		"core, which is asked": {
			"upgrades follow each other, that of core first",
			func(u *Upgrading) { u.Core = CoreUpgrade{Possible: true, Looking: true} },
			pending("waits until the source of core has answered, which is upgraded first, until 2026-11-22 12:05 UTC at the "+
				"latest", map[string]time.Time{forCore: noon}),
			noon.Add(othersInterval),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			u := upgradable()
			c.change(&u)
			before := maps.Clone(u.Waits)

			g.Expect(Upgrade(u)).To(Equal(Step{Row: c.row, Action: End, Selection: c.want, Until: c.until}))
			g.Expect(u.Waits).To(Equal(before), "what is remembered changes by the selection only")
		})

		shown = append(shown, c.row)
	}

	NewWithT(t).Expect(Upgrade(Upgrading{Invalid: refused})).To(Equal(
		Step{Row: "a policy that cannot be used stops a change", Action: End, Result: refused}))

	for _, row := range upgradeRules {
		ends := row.name != "other providers are looked at" && row.name != "a policy that cannot be used stops a change"
		NewWithT(t).Expect(slices.Contains(shown, row.name)).To(Equal(ends), row.name)
	}
}

// TestUpgradeReadsOthersOnce: other providers cost requests, and are looked at by upgrades that could start only.
func TestUpgradeReadsOthersOnce(t *testing.T) {
	const row = "other providers are looked at"

	g := NewWithT(t)
	u := upgradable()
	u.Answers = Answers{}
	g.Expect(Upgrade(u)).To(Equal(Step{Row: row, Action: ReadOthers}))

	for name, change := range map[string]func(*Upgrading){
		"nothing newer":          func(u *Upgrading) { u.Offered = nil },
		"a closed window":        func(u *Upgrading) { u.Opening = Opening{From: noon.Add(time.Hour)} },
		"an obstacle":            func(u *Upgrading) { u.Obstacle = "objects have drifted" },
		"a source that is asked": func(u *Upgrading) { u.Looking = true },
	} {
		changed := u
		change(&changed)
		g.Expect(Upgrade(changed).Action).To(Equal(End), name)
	}

	u.Answers[ReadOthers] = report.Result{Outcome: report.Retrying, Message: "no answer"}
	step := Upgrade(u)
	g.Expect(step.Row).To(Equal(row))
	g.Expect(step.Result.Message).To(Equal("no answer"))
}
