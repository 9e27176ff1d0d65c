package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("Adopting providers", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// beUpgraded matches a Deployment that has what version v1.1.0 has, and what users have added.
	beUpgraded := And(
		HaveField("Annotations", Not(HaveKey("old"))),
		HaveField("Labels", HaveKeyWithValue("team", "a")),
		HaveField("Spec.Template.Spec.Containers", HaveExactElements(And(
			HaveField("Name", "manager"),
			HaveField("Image", HaveSuffix(":v1.1.0")),
			HaveField("Env", ConsistOf(HaveField("Name", "NEW"), HaveField("Name", "USERS")))))))

	It("and upgrading them in one step removes what the installed version had, and keeps what users have added", func(
		ctx SpecContext,
	) {
		old, upgraded := newTiny("at-once", "v1.0.0").withExtras(), newTiny("at-once", "v1.1.0").withVariable("NEW")
		Expect(w.client.Create(ctx, old.namespace())).To(Succeed())
		w.addByUser(ctx, w.createComponents(ctx, old, "clusterctl"))
		Expect(w.client.Create(ctx, upgraded.configMap())).To(Succeed())

		p := upgraded.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(w.managerOf(ctx, v1alpha2.Label(p))(Default)).To(beUpgraded)
	})

	It("lets the next upgrade remove what the adopted version had, and keep what users have added", func(ctx SpecContext) {
		old, upgraded := newTiny("afterwards", "v1.0.0").withExtras(), newTiny("afterwards", "v1.1.0").withVariable("NEW")
		Expect(w.client.Create(ctx, old.namespace())).To(Succeed())
		w.addByUser(ctx, w.createComponents(ctx, old, "kubectl-client-side-apply"))
		Expect(w.client.Create(ctx, old.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, upgraded.configMap())).To(Succeed())

		p := old.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.managerOf(ctx, v1alpha2.Label(p))(Default)).To(keepExtras())

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(w.managerOf(ctx, v1alpha2.Label(p))(Default)).To(beUpgraded)
	})
})

// withVariable returns a provider whose manager has an environment variable.
func (t tiny) withVariable(name string) tiny {
	const args = "        args:"

	t.components = strings.Replace(t.components, args, "        env: [{name: "+name+", value: x}]\n"+args, 1)

	return t
}

// withExtras returns a provider whose Deployment has an annotation, a variable and a second container, which other
// versions do not have.
func (t tiny) withExtras() tiny {
	deployment := "  name: " + t.name + "-controller-manager\n"
	t = t.withVariable("OLD")
	t.components = strings.Replace(t.components, deployment, deployment+"  annotations: {old: x}\n", 1) + `
      - name: proxy
        image: registry.example.com/proxy:v1
        ports: [{containerPort: 8443}]
`

	return t
}

// keepExtras matches a Deployment with the extras, and with what users have added.
func keepExtras() gomegatypes.GomegaMatcher {
	return And(
		HaveField("Annotations", HaveKeyWithValue("old", "x")),
		HaveField("Labels", HaveKeyWithValue("team", "a")),
		HaveField("Spec.Template.Spec.Containers", ConsistOf(
			HaveField("Env", ConsistOf(HaveField("Name", "OLD"), HaveField("Name", "USERS"))),
			HaveField("Name", "proxy"))))
}

// addByUser adds a label and a variable to the manager's container, as `kubectl edit` does.
func (w *world) addByUser(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()

	before := d.DeepCopy()
	d.Labels["team"] = "a"

	manager := &d.Spec.Template.Spec.Containers[0]
	manager.Env = append(manager.Env, corev1.EnvVar{Name: "USERS", Value: "y"})

	Expect(w.client.Patch(ctx, d, client.StrategicMergeFrom(before), client.FieldOwner("kubectl-edit"))).To(Succeed())
}
