package providers

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// versions builds versions from pairs of version and contract.
func versions(pairs ...string) []v1alpha2.AvailableUpgrade {
	var all []v1alpha2.AvailableUpgrade
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, v1alpha2.AvailableUpgrade{Version: pairs[i], Contract: pairs[i+1]})
	}

	return all
}

func TestPlanUpgrades(t *testing.T) {
	core := &installedProvider{
		Label: "cluster-api", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.14.0-rc.0", "v1beta2", "v1.13.5", "v1beta2", "v1.9.11", "v1beta1", "v1.9.10", "v1beta1"),
	}
	kubeadm := &installedProvider{
		Label: "bootstrap-kubeadm", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1"),
	}
	aws := &installedProvider{
		Label: "infrastructure-aws", Version: "v2.11.1", Contract: "v1beta1",
		Available: versions("v2.11.1", "v1beta1", "v2.10.3", "v1beta1"),
	}
	ancient := &installedProvider{Label: "infrastructure-ancient", Version: "v0.1.0", Contract: "v1alpha4"}

	for name, c := range map[string]struct {
		providers []*installedProvider
		want      []upgradePlan
	}{
		"no providers": {nil, []upgradePlan{}},
		"one plan per contract of core": {
			[]*installedProvider{core, kubeadm, aws},
			[]upgradePlan{
				{Contract: "v1beta1", Steps: []upgradeStep{
					{Provider: "cluster-api", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
					{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
					{Provider: "infrastructure-aws", From: "v2.11.1", Contract: "v1beta1"},
				}},
				{Contract: "v1beta2", Steps: []upgradeStep{
					{Provider: "cluster-api", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
					{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
					{Provider: "infrastructure-aws", From: "v2.11.1", Contract: "v1beta1"},
				}},
			},
		},
		"a provider without a compatible version": {
			[]*installedProvider{{Label: "cluster-api", Version: "v1.9.11", Contract: "v1beta1"}, ancient},
			[]upgradePlan{{
				Contract: "v1beta1",
				Steps: []upgradeStep{
					{Provider: "cluster-api", From: "v1.9.11", Contract: "v1beta1"},
					{Provider: "infrastructure-ancient", From: "v0.1.0", Contract: "v1alpha4"},
				},
				Blocked: "no known version of infrastructure-ancient works with contract v1beta1 of core",
			}},
		},
		"a provider of which no versions are known": {
			[]*installedProvider{{Label: "addon-x", Version: "v1.0.0", Contract: "v1beta2", unread: errors.New("no such host")}},
			[]upgradePlan{{Contract: "v1beta2", Steps: []upgradeStep{
				{Provider: "addon-x", From: "v1.0.0", Contract: "v1beta2", Unknown: "no such host"},
			}}},
		},
		"without core": {
			[]*installedProvider{aws},
			[]upgradePlan{{Contract: "v1beta1", Steps: []upgradeStep{
				{Provider: "infrastructure-aws", From: "v2.11.1", Contract: "v1beta1"},
			}}},
		},
		"an installed version that is no version": {
			[]*installedProvider{
				{Label: "addon-x", Version: "main", Contract: "v1beta2", Available: versions("v1.0.0", "v1beta2")},
			},
			[]upgradePlan{{Contract: "v1beta2", Steps: []upgradeStep{{Provider: "addon-x", From: "main", Contract: "v1beta2"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(planUpgrades(c.providers)).To(Equal(c.want))
		})
	}
}

func TestUpgrades(t *testing.T) {
	g := NewWithT(t)
	g.Expect(upgradePlan{Steps: []upgradeStep{{Provider: "a"}, {Provider: "b", To: "v1.0.0"}}}.Upgrades()).To(BeTrue())
	g.Expect(upgradePlan{Steps: []upgradeStep{{Provider: "a"}}}.Upgrades()).To(BeFalse())
}

func TestPlanVersion(t *testing.T) {
	core := &installedProvider{
		Label: "cluster-api", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1"),
	}
	kubeadm := &installedProvider{
		Label: "bootstrap-kubeadm", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.13.4", "v1beta2", "v1.9.11", "v1beta1"),
	}
	aws := &installedProvider{Label: "infrastructure-aws", Version: "v2.11.1", Contract: "v1beta1"}
	keep := func(p *installedProvider) upgradeStep {
		return upgradeStep{Provider: p.Label, From: p.Version, Contract: p.Contract}
	}

	for name, c := range map[string]struct {
		requested string
		providers []*installedProvider
		want      upgradePlan
	}{
		"an exact version": {"v1.13.5", []*installedProvider{core, kubeadm, aws}, upgradePlan{
			Contract: "v1beta2",
			Steps: []upgradeStep{
				{Provider: "cluster-api", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
				{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
				keep(aws),
			},
		}},
		"a range": {"~1.9", []*installedProvider{core, kubeadm}, upgradePlan{Contract: "v1beta1", Steps: []upgradeStep{
			{Provider: "cluster-api", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
			{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
		}}},
		"a version that only another provider has": {"v1.13.4", []*installedProvider{core, kubeadm}, upgradePlan{
			Contract: "v1beta1",
			Steps: []upgradeStep{
				keep(core), {Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.4", Contract: "v1beta2"},
			},
			Blocked: "the contract of bootstrap-kubeadm would not work with contract v1beta1 of core",
		}},
		"an older version": {"v1.9.9", []*installedProvider{core}, upgradePlan{
			Contract: "v1beta1", Steps: []upgradeStep{keep(core)},
		}},
		"without core": {"v1.13.5", []*installedProvider{kubeadm}, upgradePlan{
			Steps: []upgradeStep{{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			upgrades, err := planVersion(c.providers, c.requested)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(upgrades).To(Equal(c.want))
		})
	}

	_, err := planVersion(nil, "newest")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("newest")))
}
