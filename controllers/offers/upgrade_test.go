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
		"a minor version that has failed": {
			func(u *Upgrading) {
				u.Range, u.Mode = "^1.0", v1alpha2.UpgradeMinor
				u.Offered = []v1alpha2.AvailableUpgrade{
					{Version: "v1.2.0", Contract: "v1beta1"}, {Version: "v1.1.0", Contract: "v1beta1"},
				}
				u.GivenUp = "v1.1.0"
			},
			Selection{Version: "v1.0.0", Pending: &v1alpha2.PendingUpgrade{
				Version: "v1.1.0", Blocked: true, Message: "it has failed, and no minor version is skipped, so a newer version " +
					"of v1.1 comes next; to try this one again, change the annotation reconcile.fluxcd.io/requestedAt",
			}},
			nextHour,
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

// TestNext: which version follows an installed one.
func TestNext(t *testing.T) {
	const (
		patch, minor = v1alpha2.UpgradePatch, v1alpha2.UpgradeMinor

		offered = "v2.0.0=v1beta2 v1.16.0=v1beta2 v1.15.2=v1beta1 v1.15.1=v1beta1 v1.14.1=v1beta1 v1.14.0=v1beta1 " +
			"v1.13.9-rc.0=v1beta1 v1.13.8=v1beta2 v1.13.8+build=v1beta1 v1.13.7=v1beta1 v1.13.6=v1beta1 v1.13.5=v1beta1 " +
			"v1.13.4=v1beta1"
	)

	for name, tt := range map[string]struct {
		versions, installed string
		mode                v1alpha2.UpgradeMode
		givenUp             []string
		want, heldUp        string
	}{
		"the newest patch":                {"~1.13", "v1.13.4", patch, nil, "v1.13.7", ""},
		"no minor in mode Patch":          {"^1.13", "v1.13.4", patch, nil, "v1.13.7", ""},
		"within the range":                {">=1.13 <1.13.6", "v1.13.4", patch, nil, "v1.13.5", ""},
		"nothing newer":                   {"~1.13", "v1.13.7", patch, nil, "", ""},
		"no downgrade":                    {"~1.13", "v1.13.10", patch, nil, "", ""},
		"no failed patch, nor one before": {"~1.13", "v1.13.4", patch, []string{"v1.13.7"}, "", ""},
		"a newer one than those that failed": {
			"~1.13", "v1.13.4", patch, []string{"v1.13.5", "v1.13.6"}, "v1.13.7", "",
		},
		"nothing installed": {"~1.13", "", patch, nil, "", ""},

		"the newest of the next minor": {"^1.13", "v1.13.4", minor, nil, "v1.14.1", ""},
		"and then of the one after it": {"^1.13", "v1.14.1", minor, nil, "v1.15.2", ""},
		"no minor outside the range":   {"~1.13", "v1.13.4", minor, nil, "v1.13.7", ""},
		"a minor that is not offered":  {"^1.12", "v1.12.9", minor, nil, "v1.13.7", ""},
		"one that the range leaves out": {
			">=1.13 <1.14 || >=1.15", "v1.13.4", minor, nil, "v1.15.2", "",
		},
		"no other contract":          {"^1.13", "v1.15.2", minor, nil, "", ""},
		"a patch before that":        {"^1.13", "v1.15.1", minor, nil, "v1.15.2", ""},
		"no major":                   {">=1.13", "v1.16.0", minor, nil, "", ""},
		"the next one failed":        {"^1.13", "v1.13.7", minor, []string{"v1.14.1"}, "", "v1.14.1"},
		"its newest did not":         {"^1.13", "v1.13.7", minor, []string{"v1.14.0"}, "v1.14.1", ""},
		"it failed, with a patch":    {"^1.13", "v1.13.4", minor, []string{"v1.14.1"}, "v1.13.7", "v1.14.1"},
		"it failed, and so did that": {"^1.13", "v1.13.4", minor, []string{"v1.13.7", "v1.14.1"}, "", "v1.14.1"},
		"a patch failed":             {"^1.13", "v1.13.4", minor, []string{"v1.13.7"}, "v1.14.1", ""},
		"one that is not offered any longer": {
			"^1.13", "v1.13.7", minor, []string{"v1.14.2"}, "", "v1.14.2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			upgrade := Upgrading{Range: tt.versions, Mode: tt.mode, Contract: "v1beta1"}

			for _, field := range strings.Fields(offered) {
				version, contract, _ := strings.Cut(field, "=")
				upgrade.Offered = append(upgrade.Offered, v1alpha2.AvailableUpgrade{Version: version, Contract: contract})
			}

			best, heldUp := upgrade.next(past{version: tt.installed, settled: true, givenUp: tt.givenUp})
			g.Expect(best).To(Equal(tt.want))
			g.Expect(heldUp).To(Equal(tt.heldUp))

			best, heldUp = upgrade.next(past{version: tt.installed, givenUp: tt.givenUp})
			g.Expect(best+heldUp).To(BeEmpty(), "what is installed has yet to become healthy")
		})
	}
}
