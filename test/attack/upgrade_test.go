package attack

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// automatic returns a provider with automatic upgrades.
func automatic(p *v1alpha2.InfrastructureProvider) *v1alpha2.InfrastructureProvider {
	p.Spec.Version = "~1.0"
	p.Spec.UpgradePolicy = &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch}

	return p
}

// installed returns a function that reads the installed version of a provider.
func (a *arena) installed(p v1alpha2.Provider) func(Gomega) string {
	return func(g Gomega) string {
		g.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(p.GetStatus().InstalledVersion).NotTo(BeNil())

		return *p.GetStatus().InstalledVersion
	}
}

// request makes the operator ask the source of a provider.
func (a *arena) request(p v1alpha2.Provider) {
	a.Helper()
	a.Expect(bedtest.Edit(a.ctx, a.admin, p, func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: time.Now().String()})
	})).To(Succeed())
}

// victimIsUpgraded checks that a provider of the victim's namespace takes a patch.
func (a *arena) victimIsUpgraded() string {
	a.Helper()

	s := small{victim, a.name + "-victim", "v1.0.0", ""}
	p := automatic(s.resource())

	a.Expect(a.admin.Create(a.ctx, s.configMap())).To(Succeed())
	a.Expect(a.admin.Create(a.ctx, p)).To(Succeed())
	a.Eventually(a.installed(p)).Should(Equal("v1.0.0"))

	s.version = "v1.0.1"
	a.Expect(a.admin.Create(a.ctx, s.configMap())).To(Succeed())

	start := time.Now()

	a.request(p)
	a.Eventually(a.installed(p)).Should(Equal("v1.0.1"), func() string {
		return fmt.Sprintf("the victim's provider waits: %+v", p.Status.AutomaticUpgrade)
	})

	return fmt.Sprintf("the victim's provider was upgraded within %s", time.Since(start).Round(time.Second))
}
