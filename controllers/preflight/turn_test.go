package preflight_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// wants is a provider that runs one version and asks for another, which has not been observed yet.
func wants(version, runs string) option {
	return func(p v1alpha2.Provider) {
		installed(p)

		p.SetGeneration(2)
		p.GetSpec().Version = version
		p.GetStatus().ObservedGeneration = 1
		p.GetStatus().DesiredVersion = runs
		p.GetStatus().InstalledVersion = &runs
	}
}

// observed is what the operator writes once it has seen the spec.
func observed(p v1alpha2.Provider) {
	p.GetStatus().ObservedGeneration = p.GetGeneration()
	p.GetStatus().DesiredVersion = p.GetSpec().Version
}

// notReady is an observed provider that is not ready for a reason.
func notReady(reason string) option {
	return func(p v1alpha2.Provider) {
		observed(p)
		conditions.MarkFalse(p, v1alpha2.ReadyCondition, reason, "")
	}
}

// upgradeFailed is a provider whose change of version has failed, in this generation of the resource.
func upgradeFailed(p v1alpha2.Provider) {
	conditions.MarkFalse(p, v1alpha2.ProviderUpgradedCondition, v1alpha2.ComponentsUpgradeErrorReason, "")
}

func TestChangesVersion(t *testing.T) {
	other, same := wants("v1.1.0", "v1.0.0"), wants("v1.0.0", "v1.0.0")
	progressing := notReady(v1alpha2.ProgressingReason)
	incompatible := notReady(v1alpha2.CAPIVersionIncompatibilityReason)
	stalled := condition(v1alpha2.StalledCondition)
	changedAgain := func(p v1alpha2.Provider) { p.SetGeneration(3) }
	theirs := func(p v1alpha2.Provider) { p.GetStatus().Release = nil }
	suspended := func(p v1alpha2.Provider) { p.GetSpec().Suspend = true }
	lost := func(p v1alpha2.Provider) { p.GetStatus().ObservedGeneration = -1 }
	rollingBack := func(p v1alpha2.Provider) {
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(1)}
	}

	for name, c := range map[string]struct {
		options []option
		changes bool
	}{
		"another version was not observed yet":     {[]option{other}, true},
		"another version is being applied":         {[]option{other, progressing}, true},
		"it cannot be fetched at the moment":       {[]option{other, notReady(v1alpha2.ComponentsFetchErrorReason)}, true},
		"an earlier change has failed":             {[]option{other, upgradeFailed, changedAgain, progressing}, true},
		"to a range that the version is not in":    {[]option{wants("~1.1", "v1.0.0")}, true},
		"to a range that the version is in":        {[]option{wants("~1.0", "v1.0.0")}, false},
		"of something else than the version":       {[]option{same}, false},
		"to the same version without v":            {[]option{wants("1.0.0", "v1.0.0")}, false},
		"of a provider that is being installed":    {[]option{installed, progressing}, false},
		"of a provider that is not installed":      {[]option{progressing}, false},
		"of one of cluster-api-operator":           {[]option{other, theirs}, false},
		"it has failed and is tried again":         {[]option{other, progressing, upgradeFailed}, false},
		"a user has to do something":               {[]option{other, progressing, stalled}, false},
		"objects cannot be found of it":            {[]option{other, progressing, stalled, lost}, false},
		"it waits for contracts":                   {[]option{other, incompatible}, false},
		"the revision of another program is kept":  {[]option{other, observed, ready}, false},
		"it is suspended":                          {[]option{other, suspended}, false},
		"of a provider that is being deleted":      {[]option{other, deleted}, false},
		"of a provider that returns to a revision": {[]option{other, rollingBack}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(preflight.StandingOf(provider(core, "cluster-api", c.options...)).Changing).To(Equal(c.changes))
		})
	}
}

func TestTurnOfProvider(t *testing.T) {
	aws := provider(infrastructure, "aws", wants("v1.1.0", "v1.0.0"))
	changes := wants("v1.1.0", "v1.0.0")
	waits := func(message string) want {
		return want{reason: v1alpha2.WaitingForCoreProviderReadyReason, waiting: true, message: message}
	}

	for name, c := range map[string]struct {
		core v1alpha2.Provider
		want want
	}{
		"core stays": {provider(core, "cluster-api", wants("v1.0.0", "v1.0.0")), want{}},
		"core changes": {
			provider(core, "cluster-api", changes),
			waits("waiting until CoreProvider system/cluster-api has changed from v1.0.0 to v1.1.0, which comes first"),
		},
		"core changes to a range": {
			provider(core, "cluster-api", wants("~1.1", "v1.0.0")),
			waits("waiting until CoreProvider system/cluster-api has changed from v1.0.0 to ~1.1, which comes first"),
		},
		"core of another cluster changes": {provider(core, "cluster-api", changes, remote("there")), want{}},
		"without core":                    {nil, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			known := []v1alpha2.Provider{aws}
			if c.core != nil {
				known = append(known, c.core)
			}

			expect(t, checker(t, known...).Turn(t.Context(), aws, "v1beta2"), c.want)
		})
	}
}

func TestTurnOfCore(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		runs          string
		want          want
	}{
		"to a wider contract":    {"v1beta1", "v1beta2", "v1.1.0", want{}},
		"of the same contract":   {"v1beta2", "v1beta2", "v1.1.0", want{}},
		"of an unknown contract": {"", "v1beta1", "v1.1.0", want{}},
		"to a narrower contract, and the other has not begun to change": {"v1beta2", "v1beta1", "v1.0.0", want{}},
		"to a narrower contract, and the other is about to change": {"v1beta2", "v1beta1", "v1.1.0", incompatible(
			"waiting until InfrastructureProvider system/aws is healthy with v1.1.0: until then it may have to return " +
				"to v1.0.0, which this version of core may not work with")},
	} {
		t.Run(name, func(t *testing.T) {
			capi := provider(core, "cluster-api", contract(c.before))
			aws := provider(infrastructure, "aws", contract("v1beta1"), wants("v1.1.0", "v1.0.0"), newest(c.runs))
			expect(t, checker(t, capi, aws).Turn(t.Context(), capi, c.after), c.want)
		})
	}
}

// newest is a provider whose newest revision has a version.
func newest(version string) option {
	return func(p v1alpha2.Provider) {
		p.GetStatus().History = []v1alpha2.ReleaseRevision{{Version: version, Status: "deployed"}}
	}
}
