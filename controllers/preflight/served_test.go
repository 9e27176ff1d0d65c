package preflight_test

import (
	"testing"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestServed(t *testing.T) {
	both, newest := []string{"v1beta1", "v1beta2"}, []string{"v1beta2"}
	refused := incompatible("this version has the Cluster API contract v1beta1, but core serves Clusters as v1beta2 " +
		"only; choose a version with another contract")

	for name, c := range map[string]struct {
		contract string
		served   []string
		options  []option
		want     want
	}{
		"core serves both":                 {"v1beta1", both, nil, want{}},
		"core serves the newest":           {"v1beta2", newest, nil, want{}},
		"core no longer serves it":         {"v1beta1", newest, nil, refused},
		"core no longer serves it, paused": {"v1beta1", newest, []option{pausing}, want{}},
		"core is not installed":            {"v1beta1", nil, nil, want{}},
		"a revision of another program":    {"", newest, nil, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			aws := provider(infrastructure, "aws", c.options...)
			expect(t, checker(t, aws).Served(aws, c.contract, c.served), c.want)
		})
	}
}

func TestCoreServed(t *testing.T) {
	both, newestOnly := []string{"v1beta1", "v1beta2"}, []string{"v1beta2"}
	old := provider(infrastructure, "aws", contract("v1beta1"))

	for name, c := range map[string]struct {
		before, after []string
		other         v1alpha2.Provider
		want          want
	}{
		"it serves the same":                  {both, both, old, want{}},
		"it has served it no longer before":   {newestOnly, newestOnly, old, want{}},
		"an old version goes that none needs": {append([]string{"v1alpha4"}, both...), both, old, want{}},
		"what it serves is unknown":           {both, nil, old, want{}},
		"core is not installed":               {nil, newestOnly, old, want{}},
		"no provider needs what goes": {
			both, newestOnly, provider(infrastructure, "aws", contract("v1beta2")), want{},
		},
		"a provider needs it": {both, newestOnly, old, incompatible(
			"this version of core does not serve Clusters as v1beta1, but InfrastructureProvider system/aws has that " +
				"contract; change that provider first, or pause all providers with spec.paused, upgrade them, and unpause them")},
		"a provider needs it, and changes": {
			both, newestOnly, provider(infrastructure, "aws", contract("v1beta1"), wants("v1.1.0", "v1.0.0")), incompatible(
				"waiting until InfrastructureProvider system/aws has changed from v1.0.0 to v1.1.0, which comes first"),
		},
		"a provider may return to what needs it": {
			both, newestOnly,
			provider(infrastructure, "aws", contract("v1beta2"), wants("v1.1.0", "v1.0.0"), newest("v1.1.0")),
			incompatible("waiting until InfrastructureProvider system/aws is healthy with v1.1.0: until then it may have " +
				"to return to v1.0.0, which this version of core may not work with"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			capi := provider(core, "cluster-api", contract("v1beta2"))
			expect(t, checker(t, capi, c.other).CoreServed(t.Context(), capi, c.before, c.after), c.want)
		})
	}
}
