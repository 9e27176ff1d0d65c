package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// request returns a change of a resource that requests a reconcile.
func request(at string) func(v1alpha2.Provider) {
	return func(p v1alpha2.Provider) {
		annotations := maps.Clone(p.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[v1alpha2.ReconcileRequestAnnotation] = at
		p.SetAnnotations(annotations)
	}
}

var _ = Describe("Without a change of the resource", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// pending matches a provider with changes that were not applied.
	pending := func(reason string, parts ...string) types.GomegaMatcher {
		parts = append(parts, "since revision", "; to apply that, run `capstan reconcile ")
		return haveCondition(v1alpha2.ChangesPendingCondition, metav1.ConditionTrue, reason, parts...)
	}
	notPending := Not(WithTransform(v1alpha2.Provider.GetConditions,
		ContainElement(HaveField("Type", v1alpha2.ChangesPendingCondition))))
	revision := func(number int) types.GomegaMatcher {
		return WithTransform(func(p v1alpha2.Provider) int { return p.GetStatus().Release.Revision }, Equal(number))
	}

	// template returns the pods of the provider's Deployment, and manager their container.
	template := func(ctx context.Context, p v1alpha2.Provider) corev1.PodTemplateSpec {
		GinkgoHelper()

		d := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: p.GetNamespace(), Name: p.GetName() + "-controller-manager"}
		Expect(w.client.Get(ctx, key, d)).To(Succeed())

		return d.Spec.Template
	}
	manager := func(ctx context.Context, p v1alpha2.Provider) corev1.Container {
		GinkgoHelper()
		return template(ctx, p).Spec.Containers[0]
	}

	It("a release stays, whatever the operator is restarted with", func(ctx SpecContext) {
		p := newTiny("staying", "v1.0.0").create(ctx, w, unmodified)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.restart("--image-registry=mirror.example.com")

		waits := And(beReady("v1.0.0"), revision(1),
			pending(v1alpha2.EnvironmentChangedReason, "the operator or its configuration has changed"))
		Eventually(w.read(ctx, p)).Should(waits)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"team": "a"}) })
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(waits)

		By("requesting a reconcile")
		update(ctx, w, p, request("now"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(2), notPending))
		Expect(manager(ctx, p).Image).To(Equal("mirror.example.com/staying:v1.0.0"))
	})

	It("settings for all managers take effect with the next request", func(ctx SpecContext) {
		w.restart()

		p := newTiny("settings", "v1.0.0").create(ctx, w, unmodified)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		before := template(ctx, p)

		authorities := filepath.Join(GinkgoT().TempDir(), "ca.crt")
		Expect(os.WriteFile(authorities, w.bed.Config().CAData, 0o600)).To(Succeed())
		w.restart("--manager-image-pull-secrets=mirror", "--manager-https-proxy=http://proxy.example.com:3128",
			"--manager-ca="+authorities)
		DeferCleanup(func() { w.restart() })

		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(1),
			pending(v1alpha2.EnvironmentChangedReason, "the operator or its configuration has changed")))
		Expect(template(ctx, p)).To(Equal(before))

		By("requesting a reconcile")
		update(ctx, w, p, request("now"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(2), notPending))

		pod := template(ctx, p).Spec
		Expect(pod.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "mirror"}}))
		Expect(pod.Containers[0].Env).To(ContainElements(
			corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example.com:3128"},
			And(HaveField("Name", "NO_PROXY"), HaveField("Value", ContainSubstring("$(KUBERNETES_SERVICE_HOST)"))),
		))

		configMap := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: p.GetNamespace(), Name: pod.Volumes[len(pod.Volumes)-1].ConfigMap.Name}
		Expect(w.client.Get(ctx, key, configMap)).To(Succeed())
		Expect(configMap.Data).To(HaveKeyWithValue("ca.crt", string(w.bed.Config().CAData)))

		By("removing the settings")
		w.restart()
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(2),
			pending(v1alpha2.EnvironmentChangedReason, "the operator or its configuration has changed")))
		update(ctx, w, p, request("later"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(3), notPending))
		Expect(template(ctx, p).Spec).To(Equal(before.Spec))
		Expect(w.client.Get(ctx, key, configMap)).To(MatchError(ContainSubstring("not found")))
	})

	// edit changes an object that a resource names.
	edit := func(ctx context.Context, o client.Object, change func()) {
		GinkgoHelper()
		Expect(bedtest.Edit(ctx, w.client, o, func(client.Object) { change() })).To(Succeed())
	}

	It("an edited Secret has no effect before the spec changes", func(ctx SpecContext) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "revised", Name: "variables"},
			StringData: map[string]string{"TINY_LEVEL": "debug"},
		}
		t := newTiny("revised", "v1.0.0")
		p := t.resource()
		p.Spec.SecretName = secret.Name

		for _, o := range []client.Object{t.namespace(), secret, t.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(1)))

		By("changing the spec, which needs no revision")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Retries: ptr.To(int32(2))}
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(1)))

		By("editing a key that the provider does not use")
		edit(ctx, secret, func() { secret.StringData = map[string]string{"UNRELATED": "x"} })

		By("editing a variable")
		edit(ctx, secret, func() { secret.StringData = map[string]string{"TINY_LEVEL": "trace"} })

		waits := And(beReady("v1.0.0"), revision(1),
			pending(v1alpha2.InputsChangedReason, "Secret revised/variables of spec.secretName has changed"))
		Eventually(w.read(ctx, p)).Should(waits)

		By("restarting the operator")
		w.restart()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"team": "a"}) })
		Consistently(w.read(ctx, p)).WithTimeout(2 * quietPeriod).Should(waits)
		Expect(manager(ctx, p).Args).To(ConsistOf("--level=debug"))

		By("deleting the Secret")
		Expect(w.client.Delete(ctx, secret)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(1), haveCondition(
			v1alpha2.InputsUnavailableCondition, metav1.ConditionTrue, v1alpha2.SecretNotFoundReason,
			"Secret revised/variables with the provider's variables does not exist")))

		secret.ResourceVersion = ""
		Expect(w.client.Create(ctx, secret)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(waits, Not(haveCondition(
			v1alpha2.InputsUnavailableCondition, metav1.ConditionTrue, v1alpha2.SecretNotFoundReason))))

		By("changing the spec")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Retries: ptr.To(int32(1))}
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(2), notPending))
		Expect(manager(ctx, p).Args).To(ConsistOf("--level=trace"))

		By("watching Secrets")
		w.restart("--watch-configsecret")
		edit(ctx, secret, func() { secret.StringData = map[string]string{"TINY_LEVEL": "warn"} })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(3), notPending))
		Expect(manager(ctx, p).Args).To(ConsistOf("--level=warn"))
	})

	It("an edited or deleted source has no effect", func(ctx SpecContext) {
		t := newTiny("sourced", "v1.0.0")
		p := t.create(ctx, w, unmodified)
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(1)))

		configMap := t.configMap()
		edit(ctx, configMap, func() {
			components := configMap.Data[v1alpha2.ConfigMapComponentsKey]
			configMap.Data[v1alpha2.ConfigMapComponentsKey] = strings.Replace(components, ":v1.0.0", ":edited", 1)
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(1), pending(v1alpha2.InputsChangedReason,
			"ConfigMap sourced/v1.0.0, the source of v1.0.0, has changed")))

		Expect(w.client.Delete(ctx, configMap)).To(Succeed())

		away := And(beReady("v1.0.0"), revision(1), haveCondition(v1alpha2.InputsUnavailableCondition,
			metav1.ConditionTrue, v1alpha2.VersionNotFoundReason, "no ConfigMap in namespace sourced matches"))
		Eventually(w.read(ctx, p)).Should(away)
		w.restart()
		update(ctx, w, p, request("while it is away"))
		Consistently(w.read(ctx, p)).WithTimeout(2 * quietPeriod).Should(away)
		Expect(manager(ctx, p).Image).To(HaveSuffix("sourced:v1.0.0"))

		By("creating it again, with other content, which was requested")

		configMap.ResourceVersion = ""
		Expect(w.client.Create(ctx, configMap)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(2), notPending))
		Expect(manager(ctx, p).Image).To(HaveSuffix("sourced:edited"))
	})

	It("a status that is deleted is written again, with a revision of the same objects", func(ctx SpecContext) {
		p := newTiny("unremembered", "v1.0.0").create(ctx, w, unmodified)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		before := w.identitiesOf(ctx, p.Name)

		w.run(ctx, "kubectl", "patch", "infrastructureprovider", p.Name, "-n", p.Namespace, "--subresource=status",
			"--type=json", "-p", `[{"op":"remove","path":"/status"}]`)
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), revision(2)))
		Expect(w.identitiesOf(ctx, p.Name)).To(Equal(before))
	})

	It("a rollback made with helm stays, whatever the operator is restarted with", func(ctx SpecContext) {
		newer := newTiny("escaped", "v1.1.0")
		p := newTiny("escaped", "v1.0.0").create(ctx, w, unmodified)
		Expect(w.client.Create(ctx, newer.configMap())).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		held := beReadyWith(v1alpha2.ExternalChangeReason,
			"v1.0.0 is healthy, held at revision 3 by another program",
			"run `capstan reconcile infrastructure-escaped`")

		w.awaitItem(ctx, p)
		Expect(w.operator.Stop()).To(Succeed())

		began := time.Now()

		w.run(ctx, "helm", "rollback", "infrastructure-escaped", "1", "-n", p.Namespace, "--wait")

		expectUndisturbed := w.undisturbed(ctx)

		w.start()
		Eventually(w.read(ctx, p)).Should(held)
		expectUndisturbed(p, began)

		w.restart("--image-registry=mirror.example.com")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"team": "a"}) })
		Consistently(w.read(ctx, p)).WithTimeout(2 * quietPeriod).Should(held)
		expectUndisturbed(p, began)

		By("requesting a reconcile")
		update(ctx, w, p, request("now"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(p.Status.Release.Revision).To(Equal(4))
	})
})
