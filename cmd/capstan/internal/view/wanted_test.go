package view_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// TestAsks checks how the version that a resource asks for is described, next to the installed one.
func TestAsks(t *testing.T) {
	for name, c := range map[string]struct{ spec, desired, installed, want string }{
		"the installed version":             {"v1.2.0", "v1.2.0", "v1.2.0", ""},
		"the same without v":                {"1.2.0", "v1.2.0", "v1.2.0", ""},
		"another version":                   {"v1.3.0", "v1.3.0", "v1.2.0", "v1.3.0"},
		"another version, not resolved yet": {"v1.3.0", "v1.2.0", "v1.2.0", "v1.3.0"},
		"a range":                           {"~1.2", "v1.2.0", "v1.2.0", ""},
		"a range with another version":      {"~1.2", "v1.2.1", "v1.2.0", "~1.2, which is v1.2.1"},
		"a new range, not resolved yet":     {"~1.3", "v1.2.1", "v1.2.1", "~1.3"},
		"any version":                       {"", "v1.2.0", "v1.2.0", ""},
		"any version, not installed yet":    {"", "v1.2.0", "", "the newest version, which is v1.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.AddonProvider{}
			p.Spec.Version = c.spec
			p.Status.DesiredVersion = c.desired
			p.Status.InstalledVersion = &c.installed

			NewWithT(t).Expect(view.NewProvider(p).Asks()).To(Equal(c.want))
		})
	}
}

func TestNotes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(view.Provider{}.Notes()).To(BeEmpty())
	g.Expect(view.Provider{Ignored: []string{"spec.variables.A has no effect"}}.Notes()).To(HaveExactElements(
		view.Note{Text: "spec.variables.A has no effect", Problem: true}))
	g.Expect(view.Provider{Wanted: "~1.2", Chosen: "v1.2.0", Version: "v1.2.0"}.Range()).To(Equal("~1.2"))

	weekly := &v1alpha2.MaintenanceWindow{Schedule: "0 2 * * sat", Duration: metav1.Duration{Duration: 2 * time.Hour}}
	policy := &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradeMinor, Window: weekly}
	g.Expect(view.Provider{UpgradePolicy: policy}.Notes()).To(HaveExactElements(
		view.Note{Text: `automatic upgrades: Minor, for 120m at "0 2 * * sat" UTC`}))

	v := view.Provider{AutomaticUpgrade: &v1alpha2.AutomaticUpgradeStatus{
		Pending: &v1alpha2.PendingUpgrade{Version: "v1.2.1", Message: "waits for the window"},
		Last:    &v1alpha2.AutomaticUpgrade{Version: "v1.2.0", Result: v1alpha2.UpgradeSucceeded},
	}}
	g.Expect(v.Notes()).To(HaveExactElements(
		view.Note{Text: "automatic upgrade to v1.2.1 waits for the window"}))

	v.AutomaticUpgrade.Pending.Blocked = true
	v.AutomaticUpgrade.Pending.Message = "a variable is missing"
	v.AutomaticUpgrade.Last.Result = v1alpha2.UpgradeFailed
	v.AutomaticUpgrade.Last.Message = "not healthy within 5m"
	g.Expect(v.Notes()).To(HaveExactElements(
		view.Note{Text: "automatic upgrade to v1.2.1 is blocked: a variable is missing", Problem: true},
		view.Note{Text: "automatic upgrade to v1.2.0: Failed: not healthy within 5m", Problem: true},
	))
}
