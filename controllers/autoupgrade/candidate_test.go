package autoupgrade

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestChoice(t *testing.T) {
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

			choice := Choice{
				Range: tt.versions, Mode: tt.mode, Installed: tt.installed, Contract: "v1beta1", GivenUp: tt.givenUp,
			}
			NewWithT(t).Expect(choice.Best(offered)).To(Equal(tt.want))
		})
	}
}

func TestCoreComesFirst(t *testing.T) {
	g := NewWithT(t)
	policy := &Policy{Mode: v1alpha2.UpgradePatch}
	offered := []v1alpha2.AvailableUpgrade{{Version: "v1.13.6", Contract: "v1beta1"}}
	core := &v1alpha2.CoreProvider{}
	core.Spec.Version = "~1.13"

	g.Expect(nextOf(core, policy, offered)).To(BeEmpty(), "nothing is installed")

	installed, contract := "v1.13.5", "v1beta1"
	core.Status.InstalledVersion, core.Status.Contract = &installed, &contract
	g.Expect(nextOf(core, policy, offered)).To(Equal("v1.13.6"))

	core.Status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
		Pending: &v1alpha2.PendingUpgrade{Version: "v1.13.6", Blocked: true},
	}
	g.Expect(nextOf(core, policy, offered)).To(BeEmpty(), "a check prevents it")

	core.Status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
		Last: &v1alpha2.AutomaticUpgrade{Version: "v1.13.6", Result: v1alpha2.UpgradeFailed},
	}
	g.Expect(nextOf(core, policy, offered)).To(BeEmpty(), "it has failed")
}

func TestParsePolicy(t *testing.T) {
	g := NewWithT(t)
	parse := func(version string, policy *v1alpha2.UpgradePolicy) (*Policy, error) {
		return Parse(&v1alpha2.ProviderSpec{Version: version, UpgradePolicy: policy})
	}

	for _, off := range []*v1alpha2.UpgradePolicy{nil, {}, {Mode: v1alpha2.UpgradeManual}} {
		policy, err := parse("v1.0.0", off)
		g.Expect(policy, err).To(BeNil())
	}

	for _, version := range []string{"", "v1.0.0", "1.0.0-rc.1"} {
		_, err := parse(version, &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch})
		g.Expect(err).To(MatchError("spec.version must be a range such as ~1.13 for spec.upgradePolicy.mode Patch"))
	}

	soak := metav1.Duration{Duration: time.Hour}
	policy, err := parse("~1.0", &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradeMinor, SoakTime: &soak})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*policy).To(Equal(Policy{Mode: v1alpha2.UpgradeMinor, Soak: time.Hour}))

	now := time.Now()
	g.Expect(policy.opening(now).Includes(now)).To(BeTrue(), "without a window it is always open")
}
