package preflight_test

import (
	"slices"
	"testing"
	"time"

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
		"a core whose change was rolled back": {
			provider(core, "cluster-api", wants("v1.1.0", "v1.0.0"), newest("v1.0.0"), notReady(v1alpha2.InstallFailedReason)),
			provider(infrastructure, "aws"),
			want{},
		},
		"a core whose change is in progress": {
			provider(core, "cluster-api", wants("v1.1.0", "v1.0.0"), newest("v1.1.0"), notReady(v1alpha2.ProgressingReason)),
			provider(infrastructure, "aws"),
			want{reason: waiting, waiting: true, message: "waiting for CoreProvider system/cluster-api to become ready"},
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

// TestSeveralCores checks which of several CoreProviders counts.
func TestSeveralCores(t *testing.T) {
	const old, young = time.Hour, time.Minute

	waitingFor := func(namespace string) want {
		return want{
			reason:  v1alpha2.WaitingForCoreProviderReadyReason,
			waiting: true,
			message: "waiting for CoreProvider " + namespace + "/cluster-api to become ready",
		}
	}
	in := func(namespace string, options ...option) v1alpha2.Provider {
		return provider(core, "cluster-api", append([]option{in(namespace)}, options...)...)
	}

	for name, c := range map[string]struct {
		cores []v1alpha2.Provider
		want  want
	}{
		"the installed one, not an older one": {[]v1alpha2.Provider{
			in("a", created(old)), in("b", created(young), installed, ready),
		}, want{}},
		"the installed one, not one that is being deleted": {[]v1alpha2.Provider{
			in("a", created(old), deleted), in("b", created(young), installed, ready),
		}, want{}},
		"the installed one, even while it is being deleted": {[]v1alpha2.Provider{
			in("a", created(old)), in("b", created(young), installed, deleted),
		}, waitingFor("b")},
		"the older one of two that are installed": {[]v1alpha2.Provider{
			in("a", created(young), installed, ready), in("b", created(old), installed),
		}, waitingFor("b")},
		"the older one of two that are not": {[]v1alpha2.Provider{
			in("a", created(young)), in("b", created(old)),
		}, waitingFor("b")},
		"one that stays, not an older one that is being deleted": {[]v1alpha2.Provider{
			in("a", created(young)), in("b", created(old), deleted),
		}, waitingFor("a")},
		"the first by namespace of the same age": {[]v1alpha2.Provider{in("b"), in("a")}, waitingFor("a")},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // caches list in random order
				slices.Reverse(c.cores)
				expect(t, checker(t, c.cores...).CoreReady(t.Context(), provider(infrastructure, "aws")), c.want)
			}
		})
	}
}
