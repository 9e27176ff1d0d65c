package offers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// noon is when the upgrades of these tests are considered.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// upgradable is a healthy provider for which the source offers a patch, at noon.
func upgradable() Upgrading {
	return Upgrading{
		Allowed: true, Range: "~1.0", Mode: v1alpha2.UpgradePatch, Contract: "v1beta1",
		Opening: Opening{Until: noon.Add(time.Hour)},
		History: historyOf(healthyAt("v1.0.0", asks)), Asked: asks,
		Offered: []v1alpha2.AvailableUpgrade{{Version: "v1.0.1", Contract: "v1beta1"}},
		Now:     noon,
	}
}

// TestUpgrade: which version is selected, and when it is decided again.
func TestUpgrade(t *testing.T) {
	var (
		inADay   = noon.Add(24 * time.Hour)
		nextHour = noon.Add(lookInterval)
		starts   = Selection{Version: "v1.0.1", Automatic: "v1.0.1", From: "v1.0.0"}
		stays    = Selection{Version: "v1.0.0"}
	)

	pending := func(message string) Selection {
		selection := stays
		selection.Pending = &v1alpha2.PendingUpgrade{Version: "v1.0.1", Message: message}

		return selection
	}
	notBefore := func(selection Selection, at time.Time) Selection {
		selection.Pending.NotBefore = &metav1.Time{Time: at}
		return selection
	}
	blocked := func(selection Selection) Selection {
		selection.Pending.Blocked = true
		return selection
	}

	for name, c := range map[string]struct {
		change func(*Upgrading)
		want   Selection
		until  time.Time
	}{
		"an upgrade": {func(*Upgrading) {}, starts, nextHour},
		"in a window": {
			func(u *Upgrading) { u.Windowed = true },
			Selection{Version: "v1.0.1", Automatic: "v1.0.1", From: "v1.0.0", Until: noon.Add(time.Hour)}, nextHour,
		},
		"no policy": {
			func(u *Upgrading) { *u = Upgrading{} }, Selection{},
			time.Time{},
		},
		"nothing installed": {
			func(u *Upgrading) { u.History = state.History{} }, Selection{}, nextHour,
		},
		"nothing newer": {
			func(u *Upgrading) { u.Offered = nil }, stays, nextHour,
		},
		"nothing newer, and a window in a day": {
			func(u *Upgrading) { u.Offered, u.Opening = nil, Opening{From: noon.Add(time.Minute)} }, stays,
			noon.Add(time.Minute),
		},
		"a version that has failed": {
			func(u *Upgrading) {
				u.History = historyOf(healthyAt("v1.0.0", asks), failedAt("v1.0.1", automatic("v1.0.1")),
					healthyAt("v1.0.0", asks))
			},
			stays, nextHour,
		},
		"a check prevents it": {
			func(u *Upgrading) { u.Prevented = Prevented{"v1.0.1", "REGION\nhas no value", noon.Add(time.Minute)} },
			blocked(pending("REGION has no value")), noon.Add(time.Minute),
		},
		"an obstacle": {
			func(u *Upgrading) { u.Obstacle = "spec.paused is true" },
			pending("waits because spec.paused is true"), nextHour,
		},
		"a closed window": {
			func(u *Upgrading) { u.Opening = Opening{From: inADay} },
			notBefore(pending("waits for the window, which opens at 2026-11-23 12:00 UTC"), inADay), nextHour,
		},
		"a source that is asked": {
			func(u *Upgrading) { u.Looking = true },
			pending("waits until the source has answered"), noon.Add(answerInterval),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			u := upgradable()
			c.change(&u)

			selected, until := Upgrade(u)
			g.Expect(selected).To(Equal(c.want))
			g.Expect(until).To(Equal(c.until))
		})
	}
}

func TestNewest(t *testing.T) {
	offer := "v2.0.0=v1beta2 v1.15.0=v1beta2 v1.14.1=v1beta1 v1.14.0=v1beta1 v1.13.9-rc.0=v1beta1 v1.13.8=v1beta2 " +
		"v1.13.8+build=v1beta1 v1.13.7=v1beta1 v1.13.6=v1beta1 v1.13.5=v1beta1 v1.13.4=v1beta1"

	for name, tt := range map[string]struct {
		versions, installed string
		mode                v1alpha2.UpgradeMode
		givenUp             []string
		want                string
	}{
		"the newest patch":                  {"~1.13", "v1.13.4", v1alpha2.UpgradePatch, nil, "v1.13.7"},
		"no minor in mode Patch":            {"^1.13", "v1.13.4", v1alpha2.UpgradePatch, nil, "v1.13.7"},
		"the newest minor":                  {"^1.13", "v1.13.4", v1alpha2.UpgradeMinor, nil, "v1.14.1"},
		"no minor outside the range":        {"~1.13", "v1.13.4", v1alpha2.UpgradeMinor, nil, "v1.13.7"},
		"no major":                          {">=1.13", "v1.14.1", v1alpha2.UpgradeMinor, nil, ""},
		"within the range":                  {">=1.13 <1.13.6", "v1.13.4", v1alpha2.UpgradePatch, nil, "v1.13.5"},
		"nothing newer":                     {"~1.13", "v1.13.7", v1alpha2.UpgradePatch, nil, ""},
		"no downgrade":                      {"~1.13", "v1.13.10", v1alpha2.UpgradePatch, nil, ""},
		"no other contract":                 {"^1.13", "v1.14.1", v1alpha2.UpgradeMinor, nil, ""},
		"no failed version, nor one before": {"~1.13", "v1.13.4", v1alpha2.UpgradePatch, []string{"v1.13.7"}, ""},
		"a newer one than those that failed": {
			"~1.13", "v1.13.4", v1alpha2.UpgradePatch, []string{"v1.13.5", "v1.13.6"}, "v1.13.7",
		},
		"nothing installed": {"~1.13", "", v1alpha2.UpgradePatch, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var offered []v1alpha2.AvailableUpgrade

			for _, field := range strings.Fields(offer) {
				version, contract, _ := strings.Cut(field, "=")
				offered = append(offered, v1alpha2.AvailableUpgrade{Version: version, Contract: contract})
			}

			upgrade := Upgrading{Range: tt.versions, Mode: tt.mode, Contract: "v1beta1", Offered: offered}
			NewWithT(t).Expect(upgrade.newest(tt.installed, tt.givenUp)).To(Equal(tt.want))
		})
	}
}
