package release

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// TestHooksOf: hooks run by weight and name. A record has them by kind, which decides between those with the same ones.
func TestHooksOf(t *testing.T) {
	hook := func(kind, name string, weight int, events ...helm.HookEvent) *helm.Hook {
		return &helm.Hook{Kind: kind, Name: name, Weight: weight, Events: events}
	}

	rel := &helm.Release{Hooks: []*helm.Hook{
		hook("ServiceAccount", "same", 0, helm.HookPreInstall),
		hook("ServiceAccount", "last", 9, helm.HookPreInstall),
		hook("ConfigMap", "other", 0, helm.HookPostInstall),
		hook("ConfigMap", "early", 0, helm.HookPostInstall, helm.HookPreInstall),
		hook("Job", "same", 0, helm.HookPreInstall),
		hook("Job", "z", -1, helm.HookPreInstall),
	}}

	var order []string
	for _, h := range hooksOf(rel, helm.HookPreInstall) {
		order = append(order, h.Kind+" "+h.Name)
	}

	NewWithT(t).Expect(order).To(Equal([]string{
		"Job z", "ConfigMap early", "ServiceAccount same", "Job same", "ServiceAccount last",
	}))
	NewWithT(t).Expect(hooksOf(rel, helm.HookPreDelete)).To(BeEmpty())
}
