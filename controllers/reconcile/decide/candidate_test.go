package decide

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

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
