package provider

import (
	"testing"

	. "github.com/onsi/gomega"

	fluxconditions "github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestUninstalled: a removal searches for nothing only if the operator has uninstalled the release itself.
func TestUninstalled(t *testing.T) {
	gone := func(p *v1alpha2.InfrastructureProvider) {
		fluxconditions.MarkFalse(p, v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason, "gone")
	}

	for name, c := range map[string]struct {
		change func(*v1alpha2.InfrastructureProvider)
		want   bool
	}{
		"the release was uninstalled": {gone, true},
		"it has no records any more": {func(p *v1alpha2.InfrastructureProvider) {
			gone(p)
			p.Status.Release = &v1alpha2.ReleaseStatus{}
		}, false},
		"nor had a revision that was about to be created": {func(p *v1alpha2.InfrastructureProvider) {
			gone(p)
			p.Status.Inventory = []v1alpha2.InventoryEntry{{ID: "_x__Namespace", Version: "v1"}}
		}, false},
		"it was never installed": {func(*v1alpha2.InfrastructureProvider) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{}
			c.change(p)

			r := &run{provider: p}
			NewWithT(t).Expect(r.uninstalled()).To(Equal(c.want))
		})
	}
}
