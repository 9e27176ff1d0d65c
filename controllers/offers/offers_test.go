package upgrades

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
)

func TestAvailableUpgrades(t *testing.T) {
	known := Known{offer: &offer{
		versions: source.ParseVersions(
			[]string{"v1.0.0", "v1.0.5", "v1.0.6-rc.1", "v1.1.0", "v1.1.2", "v1.2.0", "v2.0.0", "v3.0.0"},
		),
		metadata: &bundle.Metadata{ReleaseSeries: []bundle.ReleaseSeries{
			{
				Major:    1,
				Minor:    0,
				Contract: "v1beta1",
			},
			{Major: 1, Minor: 1, Contract: "v1beta1"},
			{Major: 1, Minor: 2, Contract: "v1beta2"},
			{Major: 2, Minor: 0, Contract: "v1beta3"},
		}},
	}}

	for name, test := range map[string]struct {
		installed string
		allowed   []string
		want      []string // version contract
	}{
		"the newest patch and the newest of all": {
			"v1.0.0", []string{"v1beta1", "v1beta2"},
			[]string{"v1.0.5 v1beta1", "v1.2.0 v1beta2"},
		},
		"no contract that does not fit": {
			"v1.0.0", []string{"v1beta1"},
			[]string{"v1.0.5 v1beta1", "v1.1.2 v1beta1"},
		},
		"no patch that is installed": {"v1.0.5", []string{"v1beta1"}, []string{"v1.1.2 v1beta1"}},
		"a patch alone":              {"v1.1.0", []string{"v1beta1"}, []string{"v1.1.2 v1beta1"}},
		"nothing newer":              {"v1.2.0", []string{"v1beta1", "v1beta2"}, nil},
		"nothing installed":          {"", []string{"v1beta1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var installed *string
			if test.installed != "" {
				installed = &test.installed
			}

			var got []string
			for _, u := range known.Available(installed, func(contract string) bool {
				for _, a := range test.allowed {
					if a == contract {
						return true
					}
				}

				return false
			}) {
				got = append(got, u.Version+" "+u.Contract)
			}

			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}
