package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A cluster whose etcd is restored from a backup", Ordered, func() {
	var w *world

	// clusterctl's inventory follows the status without a lock, until the operator is restarted.
	const noInventory = "--clusterctl-inventory=false"

	BeforeAll(func(ctx SpecContext) { w = readyWorld(ctx, noInventory) })

	It("is left alone until the operator is restarted, which acts on what is restored", func(ctx SpecContext) {
		t := newTiny("restored", "v1.0.0")
		p := t.resource()

		for _, o := range []client.Object{
			t.namespace(), t.configMap(), newTiny("restored", "v1.1.0").configMap(), p,
		} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		restore, err := w.bed.Backup(ctx)
		Expect(err).NotTo(HaveOccurred())

		expectUndisturbed := w.undisturbed(ctx)

		By("writing a lot that is lost")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		for i := range 50 {
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetLabels(map[string]string{"example.com/write": fmt.Sprint(i)})
			})
		}

		Expect(restore(ctx)).To(Succeed())

		restored := time.Now()

		By("restarting the operator, which has seen what is lost and changes nothing")
		expectUndisturbed(p, restored)
		w.restart(noInventory)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		expectUndisturbed(p, restored)

		deployments := &appsv1.DeploymentList{}
		Expect(w.client.List(ctx, deployments, client.InNamespace(p.GetNamespace()))).To(Succeed())
		Expect(deployments.Items).To(HaveLen(1))

		deployment := &deployments.Items[0]
		Expect(w.client.Patch(ctx, deployment, client.RawPatch(
			types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
			g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		}).Should(Succeed())
	})
})

// Velero, for one, restores no statuses unless it is configured to.
var _ = Describe("A resource that is restored without its status", Ordered, ContinueOnFailure, func() {
	var (
		w      *world
		folder string
	)

	BeforeAll(func(ctx SpecContext) {
		folder = GinkgoT().TempDir()
		w = sharedWorld(ctx)
	})

	// install publishes a version of a provider, and installs it.
	install := func(
		ctx context.Context, t tiny, change func(*v1alpha2.ProviderSpec),
	) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()
		t.publish(folder)
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())

		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}
		change(&p.Spec)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady(t.version))

		return p
	}
	// restore replaces a resource by what a backup has of it, in a cluster in which everything else is as it was, but for
	// what happens before the operator starts again.
	restore := func(ctx context.Context, p *v1alpha2.InfrastructureProvider, before func()) {
		GinkgoHelper()
		Expect(w.operator.Stop()).To(Succeed())

		backup := w.read(ctx, p)(Default).DeepCopyObject().(*v1alpha2.InfrastructureProvider)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetFinalizers(nil) })
		Expect(w.client.Delete(ctx, p)).To(Succeed())

		p.ObjectMeta = metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name,
			Labels: backup.Labels, Annotations: backup.Annotations, Finalizers: backup.Finalizers,
		}
		p.Spec = backup.Spec
		Expect(w.client.Create(ctx, p)).To(Succeed())
		before()
		w.start()
	}

	It("keeps the version that was chosen from its range", func(ctx SpecContext) {
		p := install(ctx, newTiny("chosen", "v1.0.0"), func(spec *v1alpha2.ProviderSpec) { spec.Version = "~1.0" })
		running := w.identitiesOf(ctx, p.Name)

		restore(ctx, p, func() {
			newTiny("chosen", "v1.0.1").publish(folder)
			newTiny("chosen", "v1.2.0").publish(folder)
		})
		Eventually(w.read(ctx, p)).Should(
			HaveField("Status.AvailableUpgrades", ContainElement(HaveField("Version", "v1.2.0"))), "the source was asked")
		Consistently(w.read(ctx, p)).WithTimeout(3 * quietPeriod).Should(beReady("v1.0.0"))
		Expect(w.identitiesOf(ctx, p.Name)).To(Equal(running))
	})

	DescribeTable("does not try again what was given up, until that is asked for",
		func(ctx SpecContext, name string, change func(*v1alpha2.ProviderSpec), givenUp, stays OmegaMatcher) {
			p := install(ctx, newTiny(name, "v1.0.0"), func(spec *v1alpha2.ProviderSpec) {
				spec.Release = &v1alpha2.ReleaseSpec{
					Timeout: &metav1.Duration{Duration: 4 * time.Second}, Retries: new(int32(0)),
				}
			})
			attempts := func() int {
				history := w.helm(ctx, "helm", "history", "infrastructure-"+name, "-n", p.Namespace)
				return len(slices.DeleteFunc(history, func(r helmRelease) bool { return r.AppVersion != "v1.0.1" }))
			}

			neverRunning(newTiny(name, "v1.0.1")).publish(folder)
			update(ctx, w, p, func(p v1alpha2.Provider) { change(p.GetSpec()) })
			w.restart() // asks the source
			Eventually(w.read(ctx, p)).Should(givenUp)

			running := w.identitiesOf(ctx, p.Name)

			restore(ctx, p, func() {})
			Eventually(w.read(ctx, p)).Should(stays)
			Consistently(attempts).WithTimeout(3 * quietPeriod).WithPolling(helmInterval).Should(Equal(1))
			Expect(w.identitiesOf(ctx, p.Name)).To(Equal(running))

			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().Version, p.GetSpec().UpgradePolicy = "v1.0.1", nil
				request("again")(p)
			})
			Eventually(attempts).WithPolling(helmInterval).Should(Equal(2))
		},
		Entry("of the version that it asks for", "given-up",
			func(spec *v1alpha2.ProviderSpec) { spec.Version = "v1.0.1" },
			beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.0.1 failed"),
			beStalled(v1alpha2.InstallFailedReason,
				"v1.0.1 was given up before", "capstan reconcile infrastructure-given-up")),
		Entry("of an automatic upgrade", "automatic",
			func(spec *v1alpha2.ProviderSpec) {
				spec.Version, spec.UpgradePolicy = "~1.0", &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch}
			},
			And(beReady("v1.0.0"), upgraded("v1.0.1", v1alpha2.UpgradeFailed)), beReady("v1.0.0")),
	)

	Describe("and without Helm's records", func() {
		settings := func(p v1alpha2.Provider) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: named(p.GetNamespace(), "settings")}
		}

		It("drops the objects that its version does not have", func(ctx SpecContext) {
			t := newTiny("previous", "v1.0.0")
			p := install(ctx, t, func(*v1alpha2.ProviderSpec) {})

			t.version, t.components = "v1.1.0", t.components+
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: previous-system}\n"
			t.publish(folder)
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = t.version })
			Eventually(w.read(ctx, p)).Should(beReady(t.version))
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(settings(p)), settings(p))).To(Succeed())

			restore(ctx, p, func() {
				w.loseRecords(ctx, p)
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
			})
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			Eventually(gone(ctx, w, settings(p))).Should(BeTrue())
		})

		It("is removed with its objects before anything is applied", func(ctx SpecContext) {
			p := install(ctx, newTiny("unapplied", "v1.0.0"), func(*v1alpha2.ProviderSpec) {})
			manager := &appsv1.Deployment{ObjectMeta: named(p.Namespace, p.Name+"-controller-manager")}

			restore(ctx, p, func() {
				w.loseRecords(ctx, p)
				Expect(w.client.Delete(ctx, p)).To(Succeed())
			})
			Eventually(gone(ctx, w, p)).Should(BeTrue())
			Expect(gone(ctx, w, manager)()).To(BeTrue())
		})
	})
})
