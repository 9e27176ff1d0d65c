package upgradeplan

import (
	"testing"

	. "github.com/onsi/gomega"
)

// versions builds versions from pairs of version and contract.
func versions(pairs ...string) []Version {
	var all []Version
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, Version{Version: pairs[i], Contract: pairs[i+1]})
	}

	return all
}

func TestNew(t *testing.T) {
	core := Provider{
		Label: "cluster-api", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.14.0-rc.0", "v1beta2", "v1.13.5", "v1beta2", "v1.9.11", "v1beta1", "v1.9.10", "v1beta1"),
	}
	kubeadm := Provider{
		Label: "bootstrap-kubeadm", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1"),
	}
	aws := Provider{
		Label: "infrastructure-aws", Version: "v2.11.1", Contract: "v1beta1",
		Available: versions("v2.11.1", "v1beta1", "v2.10.3", "v1beta1"),
	}
	ancient := Provider{Label: "infrastructure-ancient", Version: "v0.1.0", Contract: "v1alpha4"}

	for name, c := range map[string]struct {
		providers []Provider
		want      []Plan
	}{
		"no providers": {nil, []Plan{}},
		"one plan per contract of core": {
			[]Provider{core, kubeadm, aws},
			[]Plan{
				{Contract: "v1beta1", Steps: []Step{
					{Provider: "cluster-api", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
					{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
					{Provider: "infrastructure-aws", From: "v2.11.1", Contract: "v1beta1"},
				}},
				{Contract: "v1beta2", Steps: []Step{
					{Provider: "cluster-api", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
					{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
					{Provider: "infrastructure-aws", From: "v2.11.1", Contract: "v1beta1"},
				}},
			},
		},
		"a provider without a compatible version": {
			[]Provider{{Label: "cluster-api", Version: "v1.9.11", Contract: "v1beta1"}, ancient},
			[]Plan{{
				Contract: "v1beta1",
				Steps: []Step{
					{Provider: "cluster-api", From: "v1.9.11", Contract: "v1beta1"},
					{Provider: "infrastructure-ancient", From: "v0.1.0", Contract: "v1alpha4"},
				},
				Blocked: "no known version of infrastructure-ancient works with contract v1beta1 of core",
			}},
		},
		"a provider of which no versions are known": {
			[]Provider{{Label: "addon-x", Version: "v1.0.0", Contract: "v1beta2", Unknown: "no such host"}},
			[]Plan{{Contract: "v1beta2", Steps: []Step{
				{Provider: "addon-x", From: "v1.0.0", Contract: "v1beta2", Unknown: "no such host"},
			}}},
		},
		"without core": {
			[]Provider{aws},
			[]Plan{{Contract: "v1beta1", Steps: []Step{{Provider: "infrastructure-aws", From: "v2.11.1", Contract: "v1beta1"}}}},
		},
		"an installed version that is no version": {
			[]Provider{{Label: "addon-x", Version: "main", Contract: "v1beta2", Available: versions("v1.0.0", "v1beta2")}},
			[]Plan{{Contract: "v1beta2", Steps: []Step{{Provider: "addon-x", From: "main", Contract: "v1beta2"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(New(c.providers)).To(Equal(c.want))
		})
	}
}

func TestUpgrades(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Plan{Steps: []Step{{Provider: "a"}, {Provider: "b", To: "v1.0.0"}}}.Upgrades()).To(BeTrue())
	g.Expect(Plan{Steps: []Step{{Provider: "a"}}}.Upgrades()).To(BeFalse())
}

func TestForVersion(t *testing.T) {
	core := Provider{
		Label: "cluster-api", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1"),
	}
	kubeadm := Provider{
		Label: "bootstrap-kubeadm", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.13.4", "v1beta2", "v1.9.11", "v1beta1"),
	}
	aws := Provider{Label: "infrastructure-aws", Version: "v2.11.1", Contract: "v1beta1"}
	keep := func(p Provider) Step { return Step{Provider: p.Label, From: p.Version, Contract: p.Contract} }

	for name, c := range map[string]struct {
		requested string
		providers []Provider
		want      Plan
	}{
		"an exact version": {"v1.13.5", []Provider{core, kubeadm, aws}, Plan{Contract: "v1beta2", Steps: []Step{
			{Provider: "cluster-api", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
			{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"},
			keep(aws),
		}}},
		"a range": {"~1.9", []Provider{core, kubeadm}, Plan{Contract: "v1beta1", Steps: []Step{
			{Provider: "cluster-api", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
			{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.9.11", Contract: "v1beta1"},
		}}},
		"a version that only another provider has": {"v1.13.4", []Provider{core, kubeadm}, Plan{
			Contract: "v1beta1",
			Steps:    []Step{keep(core), {Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.4", Contract: "v1beta2"}},
			Blocked:  "the contract of bootstrap-kubeadm would not work with contract v1beta1 of core",
		}},
		"an older version": {"v1.9.9", []Provider{core}, Plan{Contract: "v1beta1", Steps: []Step{keep(core)}}},
		"without core": {"v1.13.5", []Provider{kubeadm}, Plan{
			Steps: []Step{{Provider: "bootstrap-kubeadm", From: "v1.9.10", To: "v1.13.5", Contract: "v1beta2"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := ForVersion(c.providers, c.requested)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(plan).To(Equal(c.want))
		})
	}

	_, err := ForVersion(nil, "newest")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("newest")))
}
