package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A provider's resource", Ordered, func() {
	var w *world

	provider := newTiny("custom", "v1.0.0")
	provider.components = strings.Replace(provider.components, `args: ["--level=${TINY_LEVEL:=info}"]`,
		`args: ["--level=${TINY_LEVEL:=info}", "--feature-gates=Old=true,Pool=${EXP_POOL:=false}"]`, 1)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: provider.name, Name: "variables"}}
	p := provider.resource()
	p.Spec.SecretName = secret.Name

	deployment := func(ctx context.Context, g Gomega) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(w.client.Get(
			ctx,
			client.ObjectKey{Namespace: provider.name, Name: provider.name + "-controller-manager"},
			d,
		)).
			To(Succeed())

		return d
	}
	// change changes the spec and waits until the provider is ready and check succeeds.
	change := func(ctx context.Context, what func(*v1alpha2.ProviderSpec), check func(Gomega, *appsv1.Deployment)) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) { what(p.GetSpec()) })
		Eventually(func(g Gomega) {
			g.Expect(w.read(ctx, p)(g)).To(beReady("v1.0.0"))
			check(g, deployment(ctx, g))
		}).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		for _, o := range []client.Object{provider.namespace(), provider.configMap(), secret, p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("warns of a flag that the manager may not have, before it does not start", func(ctx SpecContext) {
		const warning = "spec.manager.verbosity sets --v, which container manager of Deployment " +
			"doubtful-controller-manager is not published with, and may not start with"

		doubtful := neverRunning(newTiny("doubtful", "v1.0.0"))
		w.offer(ctx, doubtful)

		asks := doubtful.resource()
		asks.Spec.Manager = &v1alpha2.ManagerSpec{Verbosity: new(int32(5))}
		Expect(w.client.Create(ctx, asks)).To(Succeed())

		Eventually(w.events(ctx, asks)).Should(ContainElement(And(
			HaveField("Reason", "UnpublishedFlag"), HaveField("Note", ContainSubstring(warning)))))
		Eventually(w.read(ctx, asks)).Should(notBeReady(v1alpha2.ProgressingReason,
			"Unschedulable: ", "(pod doubtful-controller-manager-", warning))
	})

	It("names what the provider does not have, and what is similar", func(ctx SpecContext) {
		typos := newTiny("typos", "v1.0.0")
		typos.components = strings.ReplaceAll(provider.components, "custom", typos.name)
		typos.components = strings.ReplaceAll(typos.components, provider.kind(), typos.kind())
		w.offer(ctx, typos)

		asks := typos.resource()
		asks.Spec.Variables = map[string]string{"TINY_LEVL": "debug", "TINY_LEVEL": "info"}
		asks.Spec.Manager = &v1alpha2.ManagerSpec{FeatureGates: map[string]bool{"Pol": true}}
		asks.Spec.Deployment = &v1alpha2.DeploymentSpec{
			Containers: []v1alpha2.ContainerSpec{{Name: "manager", Args: map[string]string{"--levl": "debug"}}},
		}
		Expect(w.client.Create(ctx, asks)).To(Succeed())
		Eventually(w.read(ctx, asks)).Should(beReady("v1.0.0"))

		const unused = "spec.variables.TINY_LEVL has no effect: v1.0.0 has no such variable; did you mean TINY_LEVEL?"

		Expect(asks.Status.Ignored).To(ConsistOf(unused))

		rest := " of Deployment typos-controller-manager is not published with, and may not start with; did you mean "
		Eventually(w.events(ctx, asks)).Should(ContainElements(
			And(HaveField("Reason", "Ignored"), HaveField("Note", unused)),
			And(HaveField("Reason", "UnpublishedFlag"), HaveField("Note", And(
				ContainSubstring("args[--levl] sets --levl, which container manager"+rest+"level?"),
				ContainSubstring("featureGates[Pol] sets --feature-gates=Pol, which container manager"+rest+"Pool?")))),
		))
		Expect(strings.Count(newCommandLine(w).succeed(ctx, "status", v1alpha2.Label(asks)), unused)).To(Equal(1))

		update(ctx, w, asks, func(p v1alpha2.Provider) { delete(p.GetSpec().Variables, "TINY_LEVL") })
		Eventually(w.read(ctx, asks)).Should(And(beReady("v1.0.0"), WithTransform(
			func(p v1alpha2.Provider) []string { return p.GetStatus().Ignored }, BeEmpty())))
	})

	It("sets flags and feature gates of the manager", func(ctx SpecContext) {
		level := int32(4)
		before := deployment(ctx, Default)
		change(ctx, func(spec *v1alpha2.ProviderSpec) {
			spec.Manager = &v1alpha2.ManagerSpec{Verbosity: &level, FeatureGates: map[string]bool{"Pool": true, "New": false}}
			spec.Deployment = &v1alpha2.DeploymentSpec{
				Containers: []v1alpha2.ContainerSpec{
					{Name: "manager", Args: map[string]string{"--v": "2", "--level": "debug", "--namespace": "one"}},
				},
			}
		}, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Spec.Template.Spec.Containers[0].Args).
				To(Equal([]string{"--level=debug", "--feature-gates=New=false,Old=true,Pool=true", "--v=4"}))
			g.Expect(d.UID).To(Equal(before.UID), "in place")
		})
	})

	It("gets an event about settings without effect", func(ctx SpecContext) {
		Eventually(func() string {
			return w.run(ctx, "kubectl", "get", "events", "-n", provider.name)
		}).Should(ContainSubstring("--namespace of container manager is ignored"))
	})

	It("can set the replicas to zero", func(ctx SpecContext) {
		none := int32(0)

		change(
			ctx,
			func(spec *v1alpha2.ProviderSpec) { spec.Deployment.Replicas = &none },
			func(g Gomega, d *appsv1.Deployment) {
				g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(0)))
			},
		)
		change(
			ctx,
			func(spec *v1alpha2.ProviderSpec) { spec.Deployment.Replicas = nil },
			func(g Gomega, d *appsv1.Deployment) {
				g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), "as in the components")
			},
		)
	})

	It("replaces images by clusterctl's overrides in the Secret, and for a single container", func(ctx SpecContext) {
		secret.StringData = map[string]string{
			"images": "all: {repository: mirror.example.com/capi}\ninfrastructure-custom/custom: {tag: v7}\n" +
				"infrastructure-aws: {tag: v8}\n",
		}
		Expect(w.client.Update(ctx, secret)).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "images"})
		})
		Eventually(func(g Gomega) {
			g.Expect(deployment(ctx, g).Spec.Template.Spec.Containers[0].Image).To(Equal("mirror.example.com/capi/custom:v7"))
		}).Should(Succeed())
		change(ctx, func(spec *v1alpha2.ProviderSpec) {
			spec.Deployment.Containers[0].Image = &v1alpha2.ImageMeta{Tag: "v9"}
		}, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix("/custom:v9"))
		})
	})

	It("patches objects strategically, and by JSON patch operations", func(ctx SpecContext) {
		change(ctx, func(spec *v1alpha2.ProviderSpec) {
			spec.Patches = []v1alpha2.Patch{
				{
					Patch: "apiVersion: apps/v1\nkind: Deployment\n" +
						"spec: {template: {spec: {containers: [{name: manager, env: [{name: HTTPS_PROXY, value: proxy}]}]}}}",
				},
				{
					Patch: `[{"op": "add", "path": "/metadata/annotations", "value": {"patched": "yes"}}]`,
					Target: &v1alpha2.PatchTarget{
						Kind:          "Deployment",
						LabelSelector: "cluster.x-k8s.io/provider=infrastructure-custom",
					},
				},
			}
		}, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Annotations).To(HaveKeyWithValue("patched", "yes"))
			manager := d.Spec.Template.Spec.Containers[0]
			g.Expect(manager.Env).To(ConsistOf(corev1.EnvVar{Name: "HTTPS_PROXY", Value: "proxy"}))
			g.Expect(manager.Args).To(ContainElement("--v=4"), "the rest of the container is unchanged")
		})
		change(ctx, func(spec *v1alpha2.ProviderSpec) {
			spec.Patches, spec.ManifestPatches = nil, []string{"kind: Deployment\nmetadata: {annotations: {merged: indeed}}"}
		}, func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Annotations).To(And(HaveKeyWithValue("merged", "indeed"), Not(HaveKey("patched"))))
			g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(BeEmpty())
		})
	})

	It("adds objects, which are upgraded and removed with the provider", func(ctx SpecContext) {
		more := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: provider.name, Name: "more"},
			Data:       map[string]string{"manifests": moreManifests("one")},
		}
		Expect(w.client.Create(ctx, more)).To(Succeed())

		settings := func(g Gomega) *corev1.ConfigMap {
			cm := &corev1.ConfigMap{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: provider.name, Name: "settings"}, cm)).To(Succeed())

			return cm
		}
		change(ctx, func(spec *v1alpha2.ProviderSpec) {
			spec.AdditionalManifests, spec.Variables = &v1alpha2.ConfigMapReference{
				Name: more.Name,
			}, map[string]string{
				"TINY_COLOUR": "blue",
			}
		}, func(g Gomega, _ *appsv1.Deployment) {
			g.Expect(settings(g).Data).To(Equal(map[string]string{"step": "one", "colour": "blue"}))
			g.Expect(settings(g).Labels).To(HaveKeyWithValue("cluster.x-k8s.io/provider", "infrastructure-custom"))
		})

		own := &unstructured.Unstructured{}
		own.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1")
		own.SetKind("Tinycustom")
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: provider.name, Name: "example"}, own)).To(
			Succeed(), "of a kind that the provider's own CRD defines")

		revision := p.Status.Release.Revision
		more.Data["manifests"] = moreManifests("two")
		Expect(w.client.Update(ctx, more)).To(Succeed())
		change(
			ctx,
			func(spec *v1alpha2.ProviderSpec) { spec.Variables["TINY_COLOUR"] = "red" },
			func(g Gomega, _ *appsv1.Deployment) {
				g.Expect(settings(g).Data).To(Equal(map[string]string{"step": "two", "colour": "red"}))
				g.Expect(p.Status.Release.Revision).To(Equal(revision+1), "a single revision for both changes")
			},
		)

		last := settings(Default)

		change(
			ctx,
			func(spec *v1alpha2.ProviderSpec) { spec.AdditionalManifests = nil },
			func(g Gomega, _ *appsv1.Deployment) {
				g.Expect(gone(ctx, w, last)()).To(BeTrue())
			},
		)
	})

	DescribeTable("with an error gets one condition, and nothing changes",
		func(ctx SpecContext, spoil func(*v1alpha2.ProviderSpec), reason string, parts []string) {
			good := p.Spec.DeepCopy()
			before := deployment(ctx, Default)
			update(ctx, w, p, func(p v1alpha2.Provider) { spoil(p.GetSpec()) })
			Eventually(w.read(ctx, p)).Should(And(
				notBeReady(reason, append(parts, "v1.0.0 runs; a change is not applied: ")...),
				beStalled(reason),
				haveCondition(v1alpha2.ProviderInstalledCondition, metav1.ConditionTrue, v1alpha2.ProviderInstalledReason),
			))
			Expect(deployment(ctx, Default).Generation).To(Equal(before.Generation))
			update(ctx, w, p, func(p v1alpha2.Provider) { good.DeepCopyInto(p.GetSpec()) })
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		},
		Entry(
			"a container that does not exist",
			func(spec *v1alpha2.ProviderSpec) { spec.Deployment.Containers[0].Name = "manger" },
			v1alpha2.ComponentsCustomizationErrorReason,
			[]string{"spec.deployment.containers", `no container "manger"; it has manager`},
		),
		Entry(
			"a patch that matches nothing",
			func(spec *v1alpha2.ProviderSpec) {
				spec.ManifestPatches = []string{"kind: Deployment\nmetadata: {name: other, labels: {a: b}}"}
			},
			v1alpha2.ComponentsPatchErrorReason,
			[]string{"spec.manifestPatches[0]: it matches no object", "Deployment custom/custom-controller-manager"},
		),
		Entry("additional manifests that are not there",
			func(spec *v1alpha2.ProviderSpec) {
				spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "absent"}
			},
			v1alpha2.ComponentsPatchErrorReason, []string{"spec.additionalManifests: ConfigMap custom/absent does not exist"}),
	)
})

// moreManifests returns additional objects: one with a variable, and one of the provider's own
// kind.
func moreManifests(step string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {step: %s, colour: "${TINY_COLOUR}"}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: Tinycustom
metadata: {name: example}
`, step)
}
