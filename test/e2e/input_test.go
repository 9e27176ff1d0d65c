package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("A provider's input", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	It("is rejected by preflight if the version range is invalid", func(ctx SpecContext) {
		t := newTiny("no-range", "v1.0.0")
		p := t.resource()
		p.Spec.Version = "1.x2"

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.IncorrectVersionFormatReason, `"1.x2"`))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "1.x" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("is retried when the chart cannot be stored", func(ctx SpecContext) {
		t := newTiny("no-store", "v1.0.0")
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())

		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: harness.OperatorNamespace, Name: "full"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("1")}}}
		Expect(w.client.Create(ctx, quota)).To(Succeed())
		Eventually(func(g Gomega) corev1.ResourceList {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			return quota.Status.Used
		}).Should(HaveKeyWithValue(corev1.ResourceName("count/configmaps"), Not(BeZero())))

		p := t.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeInstalled(v1alpha2.ChartStoreErrorReason,
			"store chart infrastructure-no-store-1.0.0.tgz", "exceeded quota", "check the quota"))
		Expect(w.client.Delete(ctx, quota)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	// Each entry has an error, the expected condition, and a fix. Fixing only the ConfigMap or Secret
	// is enough.
	DescribeTable(
		"is reported in one condition if it is wrong, applies nothing, and recovers after the fix",
		func(
			ctx SpecContext,
			name string,
			spoil func(*tiny, *v1alpha2.InfrastructureProvider),
			condition, reason string,
			parts []string,
			fix func(context.Context, tiny, *v1alpha2.InfrastructureProvider),
		) {
			good := newTiny(name, "v1.0.0")
			bad, p := good, good.resource()
			spoil(&bad, p)
			Expect(w.client.Create(ctx, good.namespace())).To(Succeed())
			Expect(w.client.Create(ctx, bad.configMap())).To(Succeed())
			Expect(w.client.Create(ctx, p)).To(Succeed())

			Eventually(w.read(ctx, p)).Should(And(
				haveCondition(condition, metav1.ConditionFalse, reason),
				notBeReady(reason, parts...),
				beStalled(reason),
			))
			nothingIsApplied(ctx, w, name)

			writes := func() int {
				return len(w.operatorWrites(func(r bed.Request) bool { return r.Namespace == name }))
			}

			Eventually(func() bool { before := writes(); return before == writes() }).Should(BeTrue())

			before := writes()
			Consistently(writes).WithTimeout(quietPeriod).Should(Equal(before), "no hot loop")

			fix(ctx, good, p)
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		},
		Entry(
			"components that are not YAML",
			"not-yaml",
			func(t *tiny, _ *v1alpha2.InfrastructureProvider) {
				t.components = strings.Replace(t.components, "kind: ServiceAccount", "kind: [ServiceAccount", 1)
			},
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.InvalidComponentsReason,
			[]string{"components.yaml line", "not valid YAML"},
			replaceConfigMap(&w),
		),
		Entry(
			"an unknown version",
			"unknown-version",
			func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "v9.9.9" },
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.VersionNotFoundReason,
			[]string{"version v9.9.9 is not available; the source has v1.0.0"},
			func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
			},
		),
		Entry(
			"a selector that matches nothing",
			"empty-selector",
			func(_ *tiny, p *v1alpha2.InfrastructureProvider) {
				p.Spec.FetchConfig.Selector.MatchLabels = map[string]string{"provider": "another"}
			},
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.VersionNotFoundReason,
			[]string{`no ConfigMap in namespace empty-selector matches the selector "provider=another"`},
			func(ctx context.Context, t tiny, _ *v1alpha2.InfrastructureProvider) {
				cm := t.configMap()
				cm.Name, cm.Labels = "v1.0.0-again", map[string]string{
					"provider":                     "another",
					v1alpha2.ConfigMapVersionLabel: "v1.0.0",
				}
				Expect(w.client.Create(ctx, cm)).To(Succeed())
			},
		),
		Entry(
			"a Secret that is absent",
			"no-secret",
			func(_ *tiny, p *v1alpha2.InfrastructureProvider) {
				p.Spec.SecretName = "credentials"
				p.Spec.Deployment = &v1alpha2.DeploymentSpec{
					Containers: []v1alpha2.ContainerSpec{{Name: "manager", Args: map[string]string{"--namespace": "one"}}},
				}
			},
			v1alpha2.PreflightCheckCondition,
			v1alpha2.SecretNotFoundReason,
			[]string{"Secret no-secret/credentials", "does not exist"},
			func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				Expect(
					w.client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "credentials"}}),
				).To(Succeed())
				Eventually(w.events(ctx, p)).Should(ContainElement(
					HaveField("Note", ContainSubstring("--namespace of container manager is ignored"))), "although it comes late")
			},
		),
		Entry(
			"a variable of the wrong type",
			"wrong-type",
			func(t *tiny, p *v1alpha2.InfrastructureProvider) {
				t.components = strings.Replace(t.components, `"--level=${TINY_LEVEL:=info}"`, "${TINY_LEVEL:=info}", 1)
				p.Spec.Variables = map[string]string{"TINY_LEVEL": "5"}
			},
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.InstallFailedReason,
			[]string{"Deployment wrong-type/wrong-type-controller-manager",
				"the expression ${TINY_LEVEL:=info} is no text in the field args", "correct the variables"},
			func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Variables["TINY_LEVEL"] = `"5"` })
			},
		),
		Entry(
			"a credential that is not in base64",
			"not-base64",
			func(t *tiny, p *v1alpha2.InfrastructureProvider) {
				t.components += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: not-base64-credentials, " +
					"namespace: not-base64-system}\ndata: {credentials: \"${TINY_CREDENTIALS}\"}\n"
				p.Spec.Variables = map[string]string{"TINY_CREDENTIALS": "abc"}
			},
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.InstallFailedReason,
			[]string{"Secret not-base64/not-base64-credentials", "the field data.credentials is a text, expected one in base64",
				"correct the variables TINY_CREDENTIALS"},
			func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Variables["TINY_CREDENTIALS"] = "YWJj" })
			},
		),
		Entry(
			"an image from a variable that is not canonical",
			"short-image",
			func(t *tiny, _ *v1alpha2.InfrastructureProvider) {
				t.components = strings.Replace(t.components, "image: registry.example.com/", "image: ${TINY_REGISTRY:=example/}", 1)
			},
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.InstallFailedReason,
			[]string{`Deployment short-image-controller-manager: the image of the container "manager" is not a canonical name`,
				"correct the variable that sets it"},
			func(ctx context.Context, _ tiny, p *v1alpha2.InfrastructureProvider) {
				update(ctx, w, p, func(p v1alpha2.Provider) {
					p.GetSpec().Variables = map[string]string{"TINY_REGISTRY": "registry.example.com/"}
				})
			},
		),
		Entry(
			"no source at all",
			"no-source",
			func(_ *tiny, p *v1alpha2.InfrastructureProvider) { p.Spec.FetchConfig = nil },
			v1alpha2.ProviderInstalledCondition,
			v1alpha2.UnknownProviderReason,
			[]string{"InfrastructureProvider no-source is neither in clusterctl's list", "set spec.fetchConfig to where"},
			func(ctx context.Context, t tiny, p *v1alpha2.InfrastructureProvider) {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().FetchConfig = t.resource().Spec.FetchConfig })
			},
		),
	)

	It(
		"must have all required variables, and recovers when the Secret has them",
		func(ctx SpecContext) {
			t := newTiny("credentials", "v1.0.0")
			t.components += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: c, namespace: credentials-system}\n" +
				"stringData: {user: \"${TINY_USER}\", password: \"${TINY_PASSWORD}\"}\n"
			p := t.resource()
			p.Spec.SecretName = "credentials"

			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "credentials"},
				StringData: map[string]string{"unrelated-token": "tok-123"},
			}
			for _, o := range []client.Object{t.namespace(), t.configMap(), secret, p} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}

			Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MissingVariablesReason,
				"TINY_PASSWORD, TINY_USER", "Secret credentials/credentials"))
			Expect(p.Status.MissingVariables).To(Equal([]string{"TINY_PASSWORD", "TINY_USER"}))
			nothingIsApplied(ctx, w, t.name)

			secret.StringData = map[string]string{"TINY_USER": "root", "TINY_PASSWORD": "hunter2"}
			Expect(w.client.Update(ctx, secret)).To(Succeed())
			update(ctx, w, p, func(p v1alpha2.Provider) { p.SetAnnotations(map[string]string{"touched": "yes"}) })
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			Expect(p.Status.MissingVariables).To(BeEmpty())
			Expect(w.run(ctx, "helm", "get", "values", "infrastructure-credentials", "-n", t.name)).NotTo(
				ContainSubstring("tok-123"), "what no variable asks for stays out of the release")
		},
	)

	It("does not delay other providers if one manager never starts", func(ctx SpecContext) {
		broken := newTiny("broken", "v1.0.0")
		broken.components = strings.Replace(
			broken.components,
			"      containers:",
			"      nodeSelector: {no: such-node}\n      containers:",
			1,
		)

		sound := newTiny("sound", "v1.0.0")
		for _, t := range []tiny{broken, sound} {
			for _, o := range []client.Object{t.namespace(), t.configMap(), t.resource()} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}
		}

		Eventually(w.read(ctx, sound.resource())).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, broken.resource())).Should(notBeReady(v1alpha2.ProgressingReason,
			"Unschedulable: ", "(pod broken-controller-manager"))
	})

	It("is reported with the object that the API server rejects, and the reason", func(ctx SpecContext) {
		t := newTiny("refused", "v1.0.0")
		bad := t
		bad.components = strings.Replace(t.components, "replicas: 1", "replicas: -1", 1)

		p := t.resource()
		for _, o := range []client.Object{t.namespace(), bad.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(notBeInstalled(v1alpha2.InstallFailedReason,
			"the API server would refuse Deployment refused/refused-controller-manager",
			"spec.replicas",
			"greater than or equal to 0",
		))
		replaceConfigMap(&w)(ctx, t, p)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It(
		"adds the labels and annotations of the provider's Namespace to the existing namespace",
		func(ctx SpecContext) {
			t := newTiny("labels", "v1.0.0")
			t.components = strings.Replace(
				t.components,
				"  name: labels-system\n",
				"  name: labels-system\n  labels: {pod-security.kubernetes.io/enforce: \"${LEVEL}\", team: provider}\n"+
					"  annotations: {owner: provider, contact: \"${CONTACT:=provider}\"}\n",
				1,
			)
			namespace := t.namespace()
			namespace.Labels = map[string]string{"team": "ours"}
			namespace.Annotations = map[string]string{"owner": "us"}

			p := t.resource()
			p.Spec.Variables = map[string]string{"LEVEL": "privileged"}

			for _, o := range []client.Object{namespace, t.configMap(), p} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}

			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			Expect(namespace.Labels).To(
				And(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "privileged"), HaveKeyWithValue("team", "ours")))
			Expect(namespace.Annotations).To(
				And(HaveKeyWithValue("owner", "us"), HaveKeyWithValue("contact", "provider")))
		},
	)

	It(
		"selects a version only once if the version is empty or a range",
		func(ctx SpecContext) {
			older, newer := newTiny("several", "v1.0.0"), newTiny("several", "v1.1.0")
			p := older.resource()

			p.Spec.Version = ""
			for _, o := range []client.Object{older.namespace(), older.configMap(), newer.configMap(), p} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}

			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			Expect(p.Spec.Version).To(Equal("v1.1.0"), "the resolved version is written into the spec")

			apply := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha2.GroupVersion.String(),
				"kind":       string(v1alpha2.InfrastructureProviderType),
				"metadata":   map[string]any{"namespace": p.Namespace, "name": p.Name},
				"spec":       map[string]any{"version": "~1"},
			}}

			Eventually(func() error {
				return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(apply), client.FieldOwner("kubectl"))
			}).Should(Succeed(), "the operator does not own the field")

			newest := newTiny("several", "v1.2.0")
			Expect(w.client.Create(ctx, newest.configMap())).To(Succeed())
			update(ctx, w, p, func(p v1alpha2.Provider) { p.SetAnnotations(map[string]string{"touched": "yes"}) })
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(beReady("v1.1.0"))

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "~1.0" })
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		},
	)

	It("with an object of a kind that is not served waits, until a patch removes the object", func(ctx SpecContext) {
		t := newTiny("unserved", "v1.0.0")
		t.components += "---\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n" +
			"metadata: {name: metrics, namespace: unserved-system}\nspec: {endpoints: [{port: metrics}]}\n"
		p := t.create(ctx, w, unmodified)
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.WaitingForCRDsReason,
			"does not serve ServiceMonitor.v1.monitoring.coreos.com", "remove its objects with spec.patches"))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Patches = []v1alpha2.Patch{{
				Patch: "$patch: delete", Target: &v1alpha2.PatchTarget{Kind: "ServiceMonitor"},
			}}
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
	})

	It("stays ready without the ConfigMap that it was installed from", func(ctx SpecContext) {
		t := newTiny("sourceless", "v1.0.0")

		p := t.resource()
		for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		Expect(w.client.Delete(ctx, t.configMap())).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetAnnotations(map[string]string{"touched": "yes"}) })
		Eventually(func() string {
			return w.run(ctx, "kubectl", "get", "events", "-n", t.name)
		}).Should(ContainSubstring("The source is not available"))
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(beReady("v1.0.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.VersionNotFoundReason, "v1.0.0 runs; v1.1.0 is not applied"))

		By("returning to the version that runs")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		By("returning to it from the next version, which has replaced it in the source")
		w.offer(ctx, newTiny(t.name, "v1.1.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), haveCondition(v1alpha2.InputsUnavailableCondition,
			metav1.ConditionTrue, v1alpha2.VersionNotFoundReason, "version v1.0.0 is not available; the source has v1.1.0")))
		Expect(w.helm(ctx, "helm", "list", "-n", t.name)).To(ConsistOf(HaveField("AppVersion", "v1.0.0")))
	})
})

// replaceConfigMap returns a fix that writes the right content into the source's ConfigMap, and
// does nothing else.
func replaceConfigMap(w **world) func(context.Context, tiny, *v1alpha2.InfrastructureProvider) {
	return func(ctx context.Context, good tiny, _ *v1alpha2.InfrastructureProvider) {
		Expect((*w).client.Update(ctx, good.configMap())).To(Succeed())
	}
}

// nothingIsApplied checks that no object of the tiny provider exists.
func nothingIsApplied(ctx context.Context, w *world, name string) {
	GinkgoHelper()

	deployments := &appsv1.DeploymentList{}
	Expect(w.client.List(ctx, deployments, client.InNamespace(name))).To(Succeed())
	Expect(deployments.Items).To(BeEmpty())

	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(w.client.List(ctx, crds, client.MatchingLabels{"cluster.x-k8s.io/provider": "infrastructure-" + name})).To(
		Succeed())
	Expect(crds.Items).To(BeEmpty())
	Expect(w.helm(ctx, "helm", "list", "-n", name, "--all")).To(BeEmpty())
}
