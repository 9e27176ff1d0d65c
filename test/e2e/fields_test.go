package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract/audit/audittest"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// However objects are applied, these fields become what is published, and those that others set stay theirs.
var _ = Describe("The fields of objects", Ordered, ContinueOnFailure, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

	// install installs the first of several versions, and offers the others.
	install := func(ctx context.Context, all ...tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		for _, t := range all {
			w.offer(ctx, t)
		}

		p := all[0].resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady(all[0].version))

		return p
	}
	upgrade := func(ctx context.Context, p v1alpha2.Provider, version string) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
		Eventually(w.read(ctx, p)).Should(beReady(version))
	}
	// manager returns the Deployment of a provider.
	manager := func(ctx context.Context, p v1alpha2.Provider) func(Gomega) *appsv1.Deployment {
		return func(g Gomega) *appsv1.Deployment {
			d := &appsv1.Deployment{ObjectMeta: named(p.GetNamespace(), p.GetName()+"-controller-manager")}
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())

			return d
		}
	}
	haveReplicas := func(count int32) OmegaMatcher { return HaveField("Spec.Replicas", HaveValue(Equal(count))) }
	// twins returns what answering has added to a provider.
	twins := func(ctx context.Context, p v1alpha2.Provider) func(Gomega) []string {
		return func(g Gomega) []string {
			service := &corev1.Service{ObjectMeta: named(p.GetNamespace(), p.GetName())}
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())

			var found []string
			for _, port := range service.Spec.Ports {
				found = append(found, fmt.Sprintf("%d/%s to %s", port.Port, port.Protocol, port.TargetPort.String()))
			}

			pod := manager(ctx, p)(g).Spec.Template.Spec
			for _, port := range pod.Containers[0].Ports {
				found = append(found, fmt.Sprintf("container %d/%s", port.ContainerPort, port.Protocol))
			}

			for _, constraint := range pod.TopologySpreadConstraints {
				found = append(found, string(constraint.WhenUnsatisfiable))
			}

			return found
		}
	}

	// The API server tells the items of these lists apart by more than the key by which patches are merged.
	Describe("with list items of the same merge key, such as a port for both protocols", func() {
		both := []string{
			"53/UDP to 53", "53/TCP to 53", "container 53/UDP", "container 53/TCP", "ScheduleAnyway", "DoNotSchedule",
		}

		It("get the items that an upgrade adds", func(ctx SpecContext) {
			p := install(ctx, newTiny("added", "v1.0.0").answering(53, corev1.ProtocolUDP),
				newTiny("added", "v1.1.0").answering(53, corev1.ProtocolUDP, corev1.ProtocolTCP))
			upgrade(ctx, p, "v1.1.0")
			Expect(twins(ctx, p)(Default)).To(Equal(both))
		})

		It("follow an upgrade that changes both", func(ctx SpecContext) {
			p := install(ctx, newTiny("moved", "v1.0.0").answering(53, corev1.ProtocolUDP, corev1.ProtocolTCP),
				newTiny("moved", "v1.1.0").answering(1053, corev1.ProtocolUDP, corev1.ProtocolTCP))
			Expect(twins(ctx, p)(Default)).To(Equal(both))
			upgrade(ctx, p, "v1.1.0")
			Expect(twins(ctx, p)(Default)).To(HaveExactElements("53/UDP to 1053", "53/TCP to 1053",
				"container 1053/UDP", "container 1053/TCP", "ScheduleAnyway", "DoNotSchedule"))
		})

		It("get an item back that a user has removed", func(ctx SpecContext) {
			p := install(ctx, newTiny("taken", "v1.0.0").answering(53, corev1.ProtocolUDP, corev1.ProtocolTCP))
			w.run(ctx, "kubectl", "patch", "service", p.Name, "-n", p.Namespace, "--type=json",
				`-p=[{"op": "remove", "path": "/spec/ports/1"}]`)
			Eventually(twins(ctx, p)).WithTimeout(soon).Should(Equal(both))
		})
	})

	It("with variables of the same name are not mixed", func(ctx SpecContext) {
		first, second := newTiny("env", "v1.0.0"), newTiny("env", "v1.1.0")
		first.components = strings.TrimSpace(first.components) + "\n        env: [{name: PATHS, value: /a}]\n"
		second.components = strings.TrimSpace(second.components) +
			"\n        env: [{name: PATHS, value: /b}, {name: PATHS, value: \"$(PATHS):/c\"}]\n"
		p := install(ctx, first, second)

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = second.version })
		Eventually(w.read(ctx, p)).Should(Or(beReady(second.version), notBeReady(v1alpha2.InstallFailedReason, "PATHS")))

		want := []string{"/b", "$(PATHS):/c"}
		if *p.Status.InstalledVersion == first.version {
			want = []string{"/a"}
		}

		var values []string
		for _, variable := range manager(ctx, p)(Default).Spec.Template.Spec.Containers[0].Env {
			values = append(values, variable.Value)
		}

		Expect(values).To(Equal(want))
	})

	It("get the replicas back that a user has scaled to 0", func(ctx SpecContext) {
		p := install(ctx, newTiny("scaled", "v1.0.0"))
		w.run(ctx, "kubectl", "scale", "deployment", "scaled-controller-manager", "-n", p.Namespace, "--replicas=0")
		Eventually(manager(ctx, p)).WithTimeout(soon).Should(haveReplicas(1))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("keep the replicas of an autoscaler, unless the provider is paused", func(ctx SpecContext) {
		p := install(ctx, newTiny("autoscaled", "v1.0.0"), newTiny("autoscaled", "v1.1.0"))
		kubectl := func(args ...string) {
			GinkgoHelper()
			w.run(ctx, "kubectl", append(args, "-n", p.Namespace)...)
		}
		kubectl("autoscale", "deployment", "autoscaled-controller-manager", "--min=2", "--max=9")
		kubectl("scale", "deployment", "autoscaled-controller-manager", "--replicas=3")

		By("upgrading")
		upgrade(ctx, p, "v1.1.0")
		Expect(manager(ctx, p)(Default)).To(haveReplicas(3))

		By("changing another field")
		kubectl("set", "image", "deployment/autoscaled-controller-manager", "manager=registry.example.com/other")
		Eventually(manager(ctx, p)).WithTimeout(soon).Should(
			HaveField("Spec.Template.Spec.Containers", ContainElement(HaveField("Image", HaveSuffix(":v1.1.0")))))
		Expect(manager(ctx, p)(Default)).To(haveReplicas(3))

		By("pausing")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused = true })
		Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.PausedReason))
		Expect(manager(ctx, p)(Default)).To(haveReplicas(0))

		By("running it again")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused = false })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(manager(ctx, p)(Default)).NotTo(haveReplicas(0))
	})

	DescribeTable("keep the CA that cert-manager injects",
		func(ctx SpecContext, name, published string) {
			ca, err := audittest.Certificate(time.Hour)
			Expect(err).NotTo(HaveOccurred())

			stop := w.startInjecting(ctx)
			p := install(ctx, newTiny(name, "v1.0.0").withPlaceholder().withWebhooks("CREATE", published),
				newTiny(name, "v1.1.0").serving("v1", "v2").withPlaceholder().withWebhooks("UPDATE", published))
			// others returns the CAs that are not the injected one.
			others := func(g Gomega) (found []string) {
				for _, o := range []client.Object{
					&apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", newTiny(name, "").crd())},
					&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named("", name)},
					&admissionv1.MutatingWebhookConfiguration{ObjectMeta: named("", name)},
				} {
					g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
					g.Expect(clientConfigs(o)).NotTo(BeEmpty())

					for _, bundle := range clientConfigs(o) {
						if !bytes.Equal(*bundle, ca) {
							found = append(found, fmt.Sprintf("%T: %q", o, *bundle))
						}
					}
				}

				return found
			}

			Expect(w.client.Create(ctx, newTiny(name, "").issued(ca))).To(Succeed())
			Eventually(others).Should(BeEmpty())

			By("letting both run")
			w.expectNoFight(p)

			By("upgrading without cert-manager")
			stop()
			upgrade(ctx, p, "v1.1.0")
			Expect(others(Default)).To(BeEmpty())
			Expect(names(w.definition(ctx, newTiny(name, "").crd()))).To(HaveExactElements("v1", "v2"))
		},
		Entry("into webhooks that are published without one", "injected", ""),
		Entry("in place of the one of kubebuilder's former scaffold", "overwritten", "caBundle: Cg==, "),
	)

	It("keep the rules that Kubernetes gathers", func(ctx SpecContext) {
		const role = "gathered-aggregated"

		p := install(ctx, newTiny("gathered", "v1.0.0").gathering("pods"), newTiny("gathered", "v1.1.0").gathering("nodes"))
		gathered := func(g Gomega) []string {
			r := &rbacv1.ClusterRole{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Name: role}, r)).To(Succeed())

			var resources []string
			for _, rule := range r.Rules {
				resources = append(resources, rule.Resources...)
			}

			return resources
		}
		Eventually(gathered).Should(HaveExactElements("pods"))

		By("upgrading")
		upgrade(ctx, p, "v1.1.0")
		Eventually(gathered).Should(HaveExactElements("nodes"))

		By("applying everything again")

		upgraded := time.Now()

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Variables = map[string]string{"TINY_LEVEL": "debug"} })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"), HaveField("Status.Release.Revision", 3)))
		w.expectNoFight(p)
		Expect(gathered(Default)).To(HaveExactElements("nodes"))
		Expect(w.bed.Requests(func(r bed.Request) bool {
			return r.User != harness.OperatorUser && r.Resource == "clusterroles" && r.Name == role && r.Write() &&
				r.Received.After(upgraded)
		})).To(BeEmpty(), "the rules were never others")
	})
})

// expectNoFight expects that the operator writes nothing but statuses for a while, although others write.
func (w *world) expectNoFight(p v1alpha2.Provider) {
	GinkgoHelper()

	count := func(since time.Time) int {
		writes, err := harness.Writes(w.bed, harness.OperatorUser, since, harness.Concerns(p.GetNamespace()))
		Expect(err).NotTo(HaveOccurred())

		return len(writes)
	}

	settled(func() int { return count(time.Time{}) })

	began := time.Now()

	Consistently(func() int { return count(began) }, 3*quietPeriod).Should(BeZero())
}

// answering returns the provider with a Service, and for each protocol a port of it and of its container, and a
// constraint for the nodes of its pod.
func (t tiny) answering(port int, protocols ...corev1.Protocol) tiny {
	unsatisfiable := map[corev1.Protocol]corev1.UnsatisfiableConstraintAction{
		corev1.ProtocolUDP: corev1.ScheduleAnyway, corev1.ProtocolTCP: corev1.DoNotSchedule,
	}

	var service, container, pod strings.Builder

	for _, protocol := range protocols {
		fmt.Fprintf(&service, "  - {name: dns-%s, port: 53, targetPort: %d, protocol: %s}\n",
			strings.ToLower(string(protocol)), port, protocol)
		fmt.Fprintf(&container, "        - {containerPort: %d, protocol: %s}\n", port, protocol)
		fmt.Fprintf(&pod, "      - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: %s}\n",
			unsatisfiable[protocol])
	}

	t.components = strings.TrimSpace(t.components) + "\n        ports:\n" + container.String() +
		"      topologySpreadConstraints:\n" + pod.String() + fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[1]s-system}
spec:
  selector: {app: %[1]s}
  ports:
%[2]s`, t.name, service.String())

	return t
}

// withWebhooks returns the provider with webhooks for an operation on nothing, which are published with a CA or without
// one, and into which cert-manager injects one.
func (t tiny) withWebhooks(operation, ca string) tiny {
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		t.components += fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]s
metadata: {name: %[2]s, annotations: {%[3]s: %[2]s-system/%[2]s-serving-cert}}
webhooks:
- name: %[2]s.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {%[4]sservice: {name: %[2]s-webhook, namespace: %[2]s-system}}
  rules: [{apiGroups: [%[2]s.example.com], apiVersions: [v1], operations: [%[5]s], resources: [nothings]}]
`, kind, t.name, injectFrom, ca, operation)
	}

	return t
}

// gathering returns the provider with an aggregated ClusterRole in the shape of core's, and one with rules for it.
func (t tiny) gathering(resource string) tiny {
	t.components += fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-aggregated}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {%[1]s.example.com/aggregate-to-manager: "true"}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-manager, labels: {%[1]s.example.com/aggregate-to-manager: "true"}}
rules: [{apiGroups: [""], resources: [%[2]s], verbs: [get]}]
`, t.name, resource)

	return t
}
