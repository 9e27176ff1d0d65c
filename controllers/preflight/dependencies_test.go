package preflight_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// dependsOn names the dependencies of a provider.
func dependsOn(labels ...string) option {
	return func(p v1alpha2.Provider) { p.GetSpec().DependsOn = labels }
}

// waitsForCore is the status of a provider that waits for core.
func waitsForCore(p v1alpha2.Provider) {
	conditions.MarkFalse(p, v1alpha2.PreflightCheckCondition, v1alpha2.WaitingForCoreProviderReadyReason, "")
}

func TestDependencies(t *testing.T) {
	const (
		addon   = v1alpha2.ProviderType("AddonProvider")
		waiting = "waiting for the providers in spec.dependsOn to become ready: "
		cycle   = "the provider depends on itself: "
		fix     = "; remove one of them from spec.dependsOn"
	)

	pending := func(message string) want {
		return want{reason: v1alpha2.WaitingForDependenciesReason, waiting: true, message: waiting + message}
	}
	refused := func(path string) want {
		return want{reason: v1alpha2.DependencyCycleReason, message: cycle + path + fix}
	}

	for name, c := range map[string]struct {
		provider v1alpha2.Provider
		others   []v1alpha2.Provider
		want     want
	}{
		"none": {provider: provider(infrastructure, "aws")},
		"ready": {
			provider: provider(infrastructure, "aws", dependsOn("addon-a", "cluster-api")),
			others:   []v1alpha2.Provider{provider(addon, "a", ready), provider(core, "cluster-api", ready)},
		},
		"not ready, and missing": {
			provider: provider(infrastructure, "aws", dependsOn("addon-a", "addon-b", "addon-c")),
			others:   []v1alpha2.Provider{provider(addon, "a"), provider(addon, "b", ready)},
			want:     pending("AddonProvider system/a; addon-c, whose resource does not exist"),
		},
		"of another type": {
			provider: provider(infrastructure, "aws", dependsOn("addon-a")),
			others:   []v1alpha2.Provider{provider(bootstrap, "a", ready)},
			want:     pending("addon-a, whose resource does not exist"),
		},
		"in another cluster": {
			provider: provider(infrastructure, "aws", dependsOn("addon-a")),
			others:   []v1alpha2.Provider{provider(addon, "a", ready, remote("x"))},
			want:     pending("addon-a, whose resource does not exist"),
		},
		"the one of two resources that has installed it": {
			provider: provider(infrastructure, "aws", dependsOn("addon-a")),
			others:   []v1alpha2.Provider{provider(addon, "a"), provider(addon, "a", in("other"), installed, ready)},
		},
		"itself": {
			provider: provider(infrastructure, "aws", dependsOn("infrastructure-aws")),
			want:     refused("infrastructure-aws depends on infrastructure-aws"),
		},
		"itself by others": {
			provider: provider(infrastructure, "aws", dependsOn("addon-missing", "addon-a")),
			others: []v1alpha2.Provider{
				provider(addon, "a", ready, dependsOn("addon-b")),
				provider(addon, "b", ready, dependsOn("addon-c", "infrastructure-aws")),
			},
			want: refused("infrastructure-aws depends on addon-a depends on addon-b depends on infrastructure-aws"),
		},
		"core on a provider that waits for core": {
			provider: provider(core, "cluster-api", dependsOn("addon-a")),
			others:   []v1alpha2.Provider{provider(addon, "a", waitsForCore)},
			want:     refused("cluster-api depends on addon-a depends on cluster-api"),
		},
		"core on a ready provider that waits for core to change its version first": {
			provider: provider(core, "cluster-api", dependsOn("addon-a")),
			others:   []v1alpha2.Provider{provider(addon, "a", ready, waitsForCore)},
		},
		"core on a chart that does not wait for core": {
			provider: provider(core, "cluster-api", dependsOn("addon-a")),
			others:   []v1alpha2.Provider{provider(addon, "a")},
			want:     pending("AddonProvider system/a"),
		},
		"a cycle of others": {
			provider: provider(infrastructure, "aws", dependsOn("addon-a")),
			others: []v1alpha2.Provider{
				provider(addon, "a", ready, dependsOn("addon-b")), provider(addon, "b", dependsOn("addon-a")),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t, append(c.others, c.provider)...).Dependencies(t.Context(), c.provider), c.want)
		})
	}
}
