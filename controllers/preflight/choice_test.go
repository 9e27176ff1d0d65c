package preflight_test

import (
	"testing"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestChoice(t *testing.T) {
	wait := func(message string) want {
		return want{reason: v1alpha2.WaitingForCoreProviderReadyReason, waiting: true, message: message}
	}

	toBeInstalled := wait("waiting for CoreProvider system/cluster-api to be installed: its contract decides which " +
		"version is the newest that works with it; an exact spec.version does not wait for that")

	for name, c := range map[string]struct {
		core     v1alpha2.Provider
		provider v1alpha2.Provider
		want     want
	}{
		"core itself": {nil, provider(core, "cluster-api"), want{}},
		"without core": {
			nil, provider(infrastructure, "aws"),
			wait("waiting for the CoreProvider cluster-api, which exists in no namespace; create it"),
		},
		"with a core that is not installed": {
			provider(core, "cluster-api"), provider(infrastructure, "aws"),
			toBeInstalled,
		},
		"with a core whose installation begins": {
			provider(core, "cluster-api", begins), provider(infrastructure, "aws"),
			toBeInstalled,
		},
		"with a core that is not healthy yet": {
			provider(core, "cluster-api", installed, contract("v1beta1")), provider(infrastructure, "aws"), want{},
		},
		"with the core of another cluster": {
			provider(core, "cluster-api", installed, remote("there")), provider(infrastructure, "aws"),
			wait("waiting for the CoreProvider cluster-api, which exists in no namespace; create it"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := []v1alpha2.Provider{c.provider}
			if c.core != nil {
				known = append(known, c.core)
			}

			expect(t, checker(t, known...).Choice(t.Context(), c.provider), c.want)
		})
	}
}
