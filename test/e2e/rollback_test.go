package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// metadataOf returns the metadata of a provider whose minor versions 0 and 1 have these contracts.
func metadataOf(minor0, minor1 string) string {
	return strings.NewReplacer(
		"minor: 0, contract: v1beta2", "minor: 0, contract: "+minor0,
		"minor: 1, contract: v1beta2", "minor: 1, contract: "+minor1,
	).Replace(tinyMetadata)
}

// neverRunning returns the provider with a manager that fits on no node.
func neverRunning(t tiny) tiny {
	t.components = strings.Replace(
		t.components, "      containers:", "      nodeSelector: {no: such-node}\n      containers:", 1)

	return t
}

// failing returns the provider with a Job that fails after a second.
func failing(t tiny) tiny {
	t.components += "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare, namespace: " + t.name + "-system}\n" +
		"spec:\n  activeDeadlineSeconds: 1\n  template:\n    spec:\n      restartPolicy: Never\n" +
		"      nodeSelector: {no: such-node}\n      containers: [{name: prepare, image: prepare}]\n"

	return t
}

// oneWay returns two versions of a provider whose second one the API server does not change back to the first:
// it has an immutable ConfigMap that must not be deleted.
func oneWay(name string) (first, second tiny) {
	with := func(t tiny, fields string) tiny {
		t.components += "---\napiVersion: v1\nkind: ConfigMap\n" + strings.Replace(fields, "NAMESPACE", name+"-system", 1)
		return t
	}

	first = with(newTiny(name, "v1.0.0"), "metadata: {name: settings, namespace: NAMESPACE}\ndata: {a: first}\n")
	second = with(newTiny(name, "v1.1.0"), "metadata: {name: settings, namespace: NAMESPACE, "+
		"finalizers: [example.com/held]}\nimmutable: true\ndata: {a: second}\n")

	return first, second
}

var _ = Describe("A rollback", Ordered, everyKubernetes, ContinueOnFailure, func() {
	var (
		w    *world
		core v1alpha2.Provider
	)

	// Core has had both contracts: v1beta1 in revision 1, v1beta2 in revision 2.
	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		w.withoutCore(ctx)

		release, err := harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Expect(err).NotTo(HaveOccurred())

		release.Bundle.Metadata = []byte(metadataOf("v1beta1", "v1beta2"))
		core, err = release.Install(ctx, w.client)
		Expect(err).NotTo(HaveOccurred())
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))

		release.Bundle.Version = "v1.1.0"
		Expect(w.client.Create(ctx, must(release.ConfigMap()))).To(Succeed())
		update(ctx, w, core, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, core)).Should(beReady("v1.1.0"))
	})

	// install installs the first of several versions, and offers the others. An upgrade gets one attempt
	// of a few seconds.
	install := func(ctx context.Context, all ...tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		Expect(w.client.Create(ctx, all[0].namespace())).To(Succeed())

		for _, t := range all {
			Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		}

		p := all[0].resource()
		p.Spec.Release = &v1alpha2.ReleaseSpec{
			Timeout: &metav1.Duration{Duration: 3 * time.Second}, Retries: ptr.To(int32(0)),
		}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady(all[0].version))

		return p
	}
	deployment := func(ctx context.Context, p v1alpha2.Provider) *appsv1.Deployment {
		GinkgoHelper()

		d := &appsv1.Deployment{}
		name := p.GetName() + "-controller-manager"
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: p.GetNamespace(), Name: name}, d)).To(Succeed())

		return d
	}

	It("passes over the revision that was paused, and the status has the contract that runs", func(ctx SpecContext) {
		good, bad := newTiny("over", "v1.0.0"), neverRunning(newTiny("over", "v1.1.0"))
		good.metadata = metadataOf("v1beta1", "v1beta2")
		bad.metadata = good.metadata
		p := install(ctx, good, bad)
		Expect(p.Status.Contract).To(HaveValue(Equal("v1beta1")))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused = true })
		Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.PausedReason))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused, p.GetSpec().Version = false, "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beStalled(
			v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.1.0 failed, given up: "))
		Expect(deployment(ctx, p).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		Expect(p.Status.Contract).To(HaveValue(Equal("v1beta1")))
		Expect(p).NotTo(haveCondition(v1alpha2.PausedCondition, metav1.ConditionTrue, v1alpha2.PausedReason))
	})

	It("does not return to a version whose conversion webhook does not know the stored objects", func(ctx SpecContext) {
		converted := func(version, versions string) tiny {
			t := newTiny("keeping", version)
			t.components = strings.Replace(t.components, "  versions:\n", "  conversion:\n    strategy: Webhook\n"+
				"    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig:\n"+
				"        service: {name: keeping-webhook, namespace: keeping-system, path: /convert}\n  versions:\n"+versions, 1)

			return t
		}
		newer := "  - name: v2\n    served: true\n    storage: true\n" +
			"    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
		storeV2 := func(t tiny) tiny {
			t.components = strings.Replace(t.components, "name: v1\n    served: true\n    storage: true",
				"name: v1\n    served: true\n    storage: false", 1)

			return t
		}
		p := install(ctx, converted("v1.0.0", ""), neverRunning(storeV2(converted("v1.1.0", newer))),
			storeV2(converted("v1.2.0", newer)))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason,
			"v1.1.0 failed, given up: not healthy within 3s",
			"; not rolled back to v1.0.0 (revision 1): ",
			"conversion webhook",
		))
		Expect(p.Status.Release).To(And(HaveField("Revision", 2), HaveField("Status", v1alpha2.RevisionFailed)))
		Expect(deployment(ctx, p).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v1.1.0"))

		By("going forward")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.2.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))
	})

	It("follows at once when a Job has failed", func(ctx SpecContext) {
		p := install(ctx, newTiny("failing-job", "v1.0.0"), failing(newTiny("failing-job", "v1.1.0")))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Version, p.GetSpec().Release.Timeout = "v1.1.0", nil
		})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.UnhealthyReason,
			"v1.0.0 runs; v1.1.0 failed, given up: it cannot become healthy: Job prepare"))
	})

	It("changes nothing if the API server would refuse an object", func(ctx SpecContext) {
		first, second := oneWay("oneway")
		p := install(ctx, first, second)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		before := deployment(ctx, p)

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release.RollbackTo = new(1) })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"the API server would refuse ConfigMap oneway/settings, so nothing was changed: ",
			"field is immutable when `immutable` is set", "it has finalizers: example.com/held",
			"v1.1.0 runs; the rollback to revision 1 is not applied: "))
		Expect(deployment(ctx, p).Generation).To(Equal(before.Generation))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-oneway", "-n", "oneway")).To(HaveLen(2))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release.RollbackTo = nil })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
	})

	It("does not follow a failure if the API server would refuse an object", func(ctx SpecContext) {
		first, second := oneWay("stuck")
		p := install(ctx, first, neverRunning(second))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason,
			"v1.1.0 failed, given up: not healthy within 3s",
			"; not rolled back to v1.0.0 (revision 1): "+
				"the API server would refuse ConfigMap stuck/settings, so nothing was changed: "))
		Expect(deployment(ctx, p).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v1.1.0"))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-stuck", "-n", "stuck")).To(HaveLen(2))
	})

	DescribeTable("takes the next free number, as an upgrade does, if a Secret has the name",
		func(ctx SpecContext, name string, taken int) {
			p := install(ctx, newTiny(name, "v1.0.0"), neverRunning(newTiny(name, "v1.1.0")))
			record := fmt.Sprintf("sh.helm.release.v1.infrastructure-%s.v%d", name, taken)
			Expect(w.client.Create(ctx, &corev1.Secret{ObjectMeta: named(p.Namespace, record)})).To(Succeed())

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
			Eventually(w.read(ctx, p)).Should(beStalled(
				v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.1.0 failed, given up: "))
			Expect(deployment(ctx, p).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v1.0.0"))
		},
		Entry("of the record of the upgrade", "upgrading", 2),
		Entry("of its own record", "numbered", 3),
	)

	DescribeTable("is tried until it is no longer refused",
		func(ctx SpecContext, name, exempt string) {
			p := install(ctx, newTiny(name, "v1.0.0"), neverRunning(newTiny(name, "v1.1.0")))
			running := deployment(ctx, p)
			allow := w.refuse(ctx, p.Namespace, rule("deployments", admissionv1.Create, admissionv1.Update),
				admissionv1.Validation{
					Expression: exempt + " || object.spec.template.spec.containers[0].image.endsWith(':v1.1.0')",
					Reason:     ptr.To(metav1.StatusReasonForbidden),
				},
				func() error { return w.client.Patch(ctx, running, client.RawPatch(types.MergePatchType, []byte("{}"))) })

			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.TimedOutWaitingForDeploymentReason, refusal))
			allow()
			Eventually(func() string {
				return deployment(ctx, p).Spec.Template.Spec.Containers[0].Image
			}).Should(HaveSuffix(":v1.0.0"))
			Eventually(w.read(ctx, p)).Should(notBeReady(
				v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.1.0 failed, given up"))
		},
		Entry("when it is tried without changes", "refused-trial", "false"),
		Entry("when it changes something", "refused-later", "request.dryRun"),
	)

	It("to a revision that ran keeps a paused provider paused", func(ctx SpecContext) {
		p := install(ctx, newTiny("asleep", "v1.0.0"), newTiny("asleep", "v1.1.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Paused, p.GetSpec().Release.RollbackTo = true, new(1)
		})
		Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.PausedReason, "v1.0.0 is paused"))
		Expect(deployment(ctx, p).Spec.Replicas).To(HaveValue(BeZero()))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused = false })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(deployment(ctx, p).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		Expect(deployment(ctx, p).Annotations).NotTo(HaveKey(v1alpha2.PausedReplicasAnnotation))
	})

	It("does not return core to a contract that an installed provider cannot work with", func(ctx SpecContext) {
		install(ctx, newTiny("newer", "v1.0.0"))

		update(ctx, w, core, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(1)}
		})
		Eventually(w.read(ctx, core)).Should(And(
			failPreflight(v1alpha2.CAPIVersionIncompatibilityReason,
				"this version of core has the Cluster API contract v1beta1", "has v1beta2"),
			notBeReady(v1alpha2.CAPIVersionIncompatibilityReason,
				"v1.1.0 runs; the rollback to revision 1 is not applied yet: "),
		))
		Expect(core.GetStatus().Contract).To(HaveValue(Equal("v1beta2")))
	})
})
