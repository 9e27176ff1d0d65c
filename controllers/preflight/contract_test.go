package preflight_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

func incompatible(message string) want {
	return want{reason: v1alpha2.CAPIVersionIncompatibilityReason, waiting: true, message: message}
}

func TestSupportedContracts(t *testing.T) {
	g := NewWithT(t)
	g.Expect(preflight.SupportedContracts("v1beta1")).To(Equal([]string{"v1beta1"}))
	g.Expect(preflight.SupportedContracts("v1beta2")).To(Equal([]string{"v1beta1", "v1beta2"}))
	g.Expect(preflight.SupportedContracts("v1alpha4")).To(BeEmpty())
}

func TestContractOfProvider(t *testing.T) {
	aws := provider(infrastructure, "aws")

	for name, c := range map[string]struct {
		core     v1alpha2.Provider
		provider v1alpha2.Provider
		contract string
		want     want
	}{
		"v1beta1 with core v1beta1": {provider(core, "cluster-api", contract("v1beta1")), aws, "v1beta1", want{}},
		"v1beta1 with core v1beta2": {provider(core, "cluster-api", contract("v1beta2")), aws, "v1beta1", want{}},
		"v1beta2 with core v1beta2": {provider(core, "cluster-api", contract("v1beta2")), aws, "v1beta2", want{}},
		"v1beta2 with core v1beta1": {
			provider(core, "cluster-api", contract("v1beta1")), aws, "v1beta2", incompatible(
				"this version has the Cluster API contract v1beta2, and core v1beta1 works with v1beta1 only; " +
					"choose another version, or upgrade core"),
		},
		"v1beta2 with core v1beta1, which changes": {
			provider(core, "cluster-api", contract("v1beta1"), wants("v1.1.0", "v1.0.0")), aws, "v1beta2", incompatible(
				"waiting until CoreProvider system/cluster-api has changed from v1.0.0 to v1.1.0, which comes first"),
		},
		"v1beta2 with core v1beta1, paused": {
			provider(core, "cluster-api", contract("v1beta1")), provider(infrastructure, "aws", pausing), "v1beta2", want{},
		},
		"v1beta2 with a core that is not installed": {provider(core, "cluster-api"), aws, "v1beta2", want{}},
		"v1beta2 without core":                      {nil, aws, "v1beta2", want{}},
		"v1beta2 with core v1beta1 of another cluster": {
			provider(core, "cluster-api", contract("v1beta1"), remote("there")), aws, "v1beta2", want{},
		},
		"a revision of another program": {provider(core, "cluster-api", contract("v1beta1")), aws, "", want{}},
		"an unsupported contract": {nil, aws, "v1alpha4", want{
			reason: v1alpha2.CAPIVersionIncompatibilityReason,
			message: `this version has the unsupported Cluster API contract "v1alpha4"; ` +
				"choose a version with v1beta1 or v1beta2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			known := []v1alpha2.Provider{c.provider}
			if c.core != nil {
				known = append(known, c.core)
			}

			expect(t, checker(t, known...).Contract(t.Context(), c.provider, c.contract), c.want)
		})
	}
}

func TestContractOfCore(t *testing.T) {
	refused := incompatible(
		"this version of core has the Cluster API contract v1beta1, but InfrastructureProvider system/aws has v1beta2; " +
			"change that provider first, or pause all providers with spec.paused, upgrade them, and unpause them")

	for name, c := range map[string]struct {
		core     v1alpha2.Provider
		others   []v1alpha2.Provider
		contract string
		want     want
	}{
		"no other provider": {provider(core, "cluster-api"), nil, "v1beta2", want{}},
		"v1beta2 with providers of both contracts": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{
				provider(infrastructure, "aws", contract("v1beta1")),
				provider(bootstrap, "kubeadm", contract("v1beta2")),
			},
			"v1beta2", want{},
		},
		"v1beta1 with a provider v1beta1": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta1"))},
			"v1beta1", want{},
		},
		"v1beta1 with a provider v1beta2": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta2"))},
			"v1beta1", refused,
		},
		"v1beta1 with a provider v1beta2, which changes": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta2"), wants("v1.1.0", "v1.0.0"))},
			"v1beta1", incompatible(
				"waiting until InfrastructureProvider system/aws has changed from v1.0.0 to v1.1.0, which comes first"),
		},
		"v1beta1 with a provider v1beta2, whose change has failed": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{
				provider(infrastructure, "aws", contract("v1beta2"), wants("v1.1.0", "v1.0.0"), observed, upgradeFailed),
			},
			"v1beta1", incompatible("this version of core has the Cluster API contract v1beta1, but " +
				"InfrastructureProvider system/aws has v1beta2; its change from v1.0.0 to v1.1.0 has not succeeded, " +
				"and its condition Ready says why; core follows once it has"),
		},
		"v1beta1 with a provider that is not installed": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{provider(infrastructure, "aws")},
			"v1beta1", want{},
		},
		"v1beta1 with a provider v1beta2 of another cluster": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta2"), remote("there"))},
			"v1beta1", want{},
		},
		"all are paused": {
			provider(core, "cluster-api", pausing),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta2"), paused)},
			"v1beta1", want{},
		},
		"all but core are paused": {
			provider(core, "cluster-api"),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta2"), paused)},
			"v1beta1", refused,
		},
		"a provider still has to be paused": {
			provider(core, "cluster-api", pausing),
			[]v1alpha2.Provider{provider(infrastructure, "aws", contract("v1beta2"), pausing)},
			"v1beta1", refused,
		},
		"a provider that was never installed need not be paused": {
			provider(core, "cluster-api", pausing),
			[]v1alpha2.Provider{
				provider(infrastructure, "aws", contract("v1beta2"), paused),
				provider(infrastructure, "azure", in("tenant")),
			},
			"v1beta1", want{},
		},
		"an installed provider without a contract has to be paused": {
			provider(core, "cluster-api", pausing),
			[]v1alpha2.Provider{
				provider(infrastructure, "aws", contract("v1beta2"), paused),
				provider(infrastructure, "other", installed),
			},
			"v1beta1", refused,
		},
		"an unsupported contract": {provider(core, "cluster-api"), nil, "", want{
			reason:  v1alpha2.CAPIVersionIncompatibilityReason,
			message: `this version has the unsupported Cluster API contract ""; choose a version with v1beta1 or v1beta2`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t, append(c.others, c.core)...).Contract(t.Context(), c.core, c.contract), c.want)
		})
	}
}

func TestUnpause(t *testing.T) {
	wasPaused := condition(v1alpha2.PausedCondition)

	for name, c := range map[string]struct {
		provider v1alpha2.Provider
		contract string
		others   []v1alpha2.Provider
		want     want
	}{
		"a provider that was not paused": {
			provider: provider(infrastructure, "aws"),
			others: []v1alpha2.Provider{
				provider(core, "cluster-api", contract("v1beta1")),
				provider(bootstrap, "kubeadm", contract("v1beta2")),
			},
		},
		"a provider that stays paused": {
			provider: provider(infrastructure, "aws", paused),
			others: []v1alpha2.Provider{
				provider(core, "cluster-api", contract("v1beta1")),
				provider(bootstrap, "kubeadm", contract("v1beta2")),
			},
		},
		"while another provider does not work with core": {
			provider: provider(infrastructure, "aws", wasPaused),
			contract: "v1beta1",
			others: []v1alpha2.Provider{
				provider(core, "cluster-api", contract("v1beta1")),
				provider(bootstrap, "kubeadm", contract("v1beta2")),
			},
			want: incompatible("this provider stays paused while BootstrapProvider system/kubeadm has the Cluster API " +
				"contract v1beta2, which core v1beta1 does not work with; upgrade that provider first"),
		},
		"when all work with core": {
			provider: provider(infrastructure, "aws", wasPaused),
			contract: "v1beta2",
			others: []v1alpha2.Provider{
				provider(core, "cluster-api", contract("v1beta2")),
				provider(bootstrap, "kubeadm", contract("v1beta1")),
			},
		},
		"without core": {
			provider: provider(infrastructure, "aws", wasPaused),
			contract: "v1beta2",
			others:   []v1alpha2.Provider{provider(bootstrap, "kubeadm", contract("v1beta1"))},
		},
		"core, while a provider does not work with it": {
			provider: provider(core, "cluster-api", wasPaused, contract("v1beta2")),
			contract: "v1beta1",
			others:   []v1alpha2.Provider{provider(bootstrap, "kubeadm", contract("v1beta2"))},
			want: incompatible("this provider stays paused while BootstrapProvider system/kubeadm has the Cluster API " +
				"contract v1beta2, which core v1beta1 does not work with; upgrade that provider first"),
		},
		"core, when all work with it": {
			provider: provider(core, "cluster-api", wasPaused, contract("v1beta1")),
			contract: "v1beta2",
			others:   []v1alpha2.Provider{provider(bootstrap, "kubeadm", contract("v1beta2"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t, append(c.others, c.provider)...).Unpause(t.Context(), c.provider, c.contract), c.want)
		})
	}
}
