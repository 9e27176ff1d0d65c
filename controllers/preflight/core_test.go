package preflight_test

import (
	"testing"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestCoreReady(t *testing.T) {
	const waiting = v1alpha2.WaitingForCoreProviderReadyReason

	noCore := want{
		reason:  waiting,
		waiting: true,
		message: "waiting for the CoreProvider cluster-api, which exists in no namespace; create it",
	}

	for name, c := range map[string]struct {
		core     v1alpha2.Provider
		provider v1alpha2.Provider
		want     want
	}{
		"core does not wait for itself": {provider: provider(core, "cluster-api")},
		"no core":                       {provider: provider(infrastructure, "aws"), want: noCore},
		"a ready core":                  {provider(core, "cluster-api", ready), provider(infrastructure, "aws"), want{}},
		"a core in another namespace": {
			provider(core, "cluster-api", in("a"), ready), provider(infrastructure, "aws"), want{},
		},
		"a core that is not installed": {
			provider(core, "cluster-api"), provider(infrastructure, "aws"), want{
				reason:  waiting,
				waiting: true,
				message: "waiting for CoreProvider system/cluster-api to become ready",
			},
		},
		"a core that is installed but not ready": {
			provider(core, "cluster-api", condition(v1alpha2.ProviderInstalledCondition)),
			provider(infrastructure, "aws"),
			want{
				reason:    waiting,
				waiting:   true,
				allowCRDs: true,
				message:   "waiting for CoreProvider system/cluster-api to become ready",
			},
		},
		"a core with another name": {provider(core, "capi", ready), provider(infrastructure, "aws"), noCore},
		"a core of another cluster": {
			provider(core, "cluster-api", ready), provider(infrastructure, "aws", remote("there")), noCore,
		},
		"a core of the same remote cluster": {
			provider(core, "cluster-api", ready, remote("there")),
			provider(infrastructure, "aws", remote("there")),
			want{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var known []v1alpha2.Provider
			if c.core != nil {
				known = append(known, c.core)
			}

			expect(t, checker(t, known...).CoreReady(t.Context(), c.provider), c.want)
		})
	}
}
