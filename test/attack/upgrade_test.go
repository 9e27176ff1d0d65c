package attack

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// upgradeAttempts stop the automatic upgrades of others.
var upgradeAttempts = []attempt{
	{"An automatic upgrade that never becomes healthy, with a timeout of 9 years", func(a *arena) string {
		s := a.small("")
		s.extra = "---\n" + strings.NewReplacer("NAME", a.name).Replace(neverRunning)
		p := automatic(s.by("installer"), 80000*time.Hour)
		a.create(a.small("").configMap(), p)
		a.Eventually(a.installed(p)).Should(Equal("v1.0.0"))

		s.version = "v1.0.1"
		a.create(s.configMap())
		a.Eventually(func(g Gomega) {
			a.request(p)
			g.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			g.Expect(p.Status.AutomaticUpgrade).To(HaveField("Last.Result", v1alpha2.UpgradeProgressing))
		}).WithPolling(time.Second).Should(Succeed())

		return a.victimIsUpgraded()
	}},
}

// neverRunning is a Deployment whose pods fit on no node.
const neverRunning = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAME-system}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      nodeSelector: {no: such-node}
      containers: [{name: manager, image: registry.example.com/manager}]
`

// automatic returns a provider with automatic upgrades.
func automatic(p *v1alpha2.InfrastructureProvider, timeout time.Duration) *v1alpha2.InfrastructureProvider {
	p.Spec.Version = "~1.0"
	p.Spec.UpgradePolicy = &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch}
	p.Spec.Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: timeout}}

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

	return a.victimIsUpgradedAfter(0)
}

// victimIsUpgradedAfter is victimIsUpgraded, for a provider that lets others prove themselves for a while.
func (a *arena) victimIsUpgradedAfter(soak time.Duration) string {
	a.Helper()

	s := small{victim, a.name + "-victim", "v1.0.0", ""}
	p := automatic(s.resource(), 10*time.Second)
	p.Spec.UpgradePolicy.SoakTime = &metav1.Duration{Duration: soak}

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
