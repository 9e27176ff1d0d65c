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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

var _ = Describe("A release", Ordered, ContinueOnFailure, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// versions installs the first of several versions and offers the others.
	versions := func(ctx context.Context, release *v1alpha2.ReleaseSpec, all ...tiny) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		p := all[0].resource()
		p.Spec.Release = release

		Expect(w.client.Create(ctx, all[0].namespace())).To(Succeed())

		for _, t := range all {
			Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		}

		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady(all[0].version))

		return p
	}
	upgrade := func(ctx context.Context, p v1alpha2.Provider, version string) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
	}
	deployment := func(ctx context.Context, name string) *appsv1.Deployment {
		GinkgoHelper()

		d := &appsv1.Deployment{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: name, Name: name + "-controller-manager"}, d)).To(Succeed())

		return d
	}
	// quickly returns a policy that gives up soon.
	quickly := func(retries int32) *v1alpha2.ReleaseSpec {
		return &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 2 * time.Second}, Retries: &retries}
	}

	// eventsSince returns a function that lists what events say of a provider since a time.
	eventsSince := func(ctx context.Context, p client.Object, begin time.Time) func(Gomega) []string {
		return func(g Gomega) []string {
			var texts []string

			for _, e := range w.events(ctx, p)(g) {
				if e.EventTime.After(begin) {
					texts = append(texts, fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Note))
				}
			}

			return texts
		}
	}

	Describe("whose upgrade fails", func() {
		It("is rolled back, retried as often as allowed, and then waits for a change", func(ctx SpecContext) {
			good, bad, better := newTiny("unhealthy", "v1.0.0"), newTiny("unhealthy", "v1.1.0"), newTiny("unhealthy", "v1.2.0")
			bad.components = strings.Replace(bad.components, "registry.example.com/", "registry.example.com/never-pulled/", 1)
			spec := quickly(1)
			spec.Timeout.Duration = 8 * time.Second // long enough to read the pods' state
			p := versions(ctx, spec, good, bad, better)
			uid := deployment(ctx, p.Name).UID
			seen := w.observeOutages(ctx, "infrastructure-unhealthy")
			begin := time.Now()

			upgrade(ctx, p, "v1.1.0")
			Eventually(w.read(ctx, p)).Should(And(
				beStalled(v1alpha2.TimedOutWaitingForDeploymentReason),
				notBeReady(v1alpha2.TimedOutWaitingForDeploymentReason,
					"v1.0.0 runs; v1.1.0 failed twice, given up: not healthy within 8s",
					"unhealthy-controller-manager",
					"; to try again, run `capstan reconcile infrastructure-unhealthy`",
				),
				haveCondition(v1alpha2.ProviderUpgradedCondition, metav1.ConditionFalse, v1alpha2.ComponentsUpgradeErrorReason,
					"v1.1.0 failed twice, given up"),
				haveCondition(
					v1alpha2.ProviderInstalledCondition,
					metav1.ConditionTrue,
					v1alpha2.ProviderInstalledReason,
					"has v1.0.0 as revision",
				),
			))
			Expect(p.Status.InstalledVersion).To(HaveValue(Equal("v1.0.0")))

			Expect(w.helm(ctx, "helm", "history", "infrastructure-unhealthy", "-n", p.Namespace)).To(HaveExactElements(
				And(HaveField("Status", "superseded"), HaveField("AppVersion", "v1.0.0")),
				And(
					HaveField("Status", "failed"),
					HaveField("AppVersion", "v1.1.0"),
					HaveField(
						"Description",
						And(
							ContainSubstring("not healthy within 8s"),
							ContainSubstring("ImagePullBackOff: image registry.example.com/never-pulled/unhealthy:v1.1.0"),
						),
					),
				),
				And(
					HaveField("Status", "superseded"),
					HaveField("AppVersion", "v1.0.0"),
					HaveField("Description", HavePrefix("Rollback to 1: not healthy within 8s")),
				),
				And(HaveField("Status", "failed"), HaveField("AppVersion", "v1.1.0")),
				And(HaveField("Status", "deployed"), HaveField("AppVersion", "v1.0.0")),
			))

			Eventually(eventsSince(ctx, p, begin)).Should(ConsistOf(
				MatchRegexp("^Normal Progressing applying v1.1.0: "),
				MatchRegexp("^Warning TimedOutWaitingForDeployment .*v1.1.0 failed, will be tried again: not healthy within 8s"),
				Equal("Normal ProviderInstalled Rolled back to v1.0.0 as revision 3, because v1.1.0 failed"),
				MatchRegexp("^Warning TimedOutWaitingForDeployment .*v1.1.0 failed twice, given up: not healthy within 8s"),
				Equal("Normal ProviderInstalled Rolled back to v1.0.0 as revision 5, because v1.1.0 failed"),
			), "each failed attempt and each rollback once")

			_, least := seen()
			Expect(least).To(BeEquivalentTo(1), "the old version was available throughout")

			By("restarting the operator, which begins nothing again")

			history := p.Status.History

			Expect(w.operator.Kill()).To(Succeed())
			w.start()
			Eventually(w.read(ctx, p)).Should(
				beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "v1.1.0 failed twice, given up"))
			Expect(p.Status.History).To(HaveLen(len(history)))

			writes := func() int {
				return len(w.operatorWrites(func(r bed.Request) bool { return r.Namespace == p.Namespace }))
			}

			// The available versions are looked up once more.
			Consistently(writes).WithTimeout(quietPeriod).Should(Equal(settled(writes)))

			By("upgrading to a version that works")
			upgrade(ctx, p, "v1.2.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))
			Expect(p).To(
				haveCondition(
					v1alpha2.ProviderUpgradedCondition,
					metav1.ConditionTrue,
					v1alpha2.ProviderUpgradedReason,
					"has v1.2.0",
				),
			)
			Expect(deployment(ctx, p.Name).UID).To(Equal(uid))
		})

		It(
			"is not rolled back with onFailure None, and is ready as soon as it becomes healthy",
			func(ctx SpecContext) {
				good, bad := newTiny("abandoned", "v1.0.0"), newTiny("abandoned", "v1.1.0")
				bad.components = strings.Replace(
					bad.components,
					"      containers:",
					"      nodeSelector: {late: node}\n      containers:",
					1,
				)
				spec := quickly(0)
				spec.OnFailure = v1alpha2.FailureNone
				p := versions(ctx, spec, good, bad)
				upgrade(ctx, p, "v1.1.0")
				Eventually(w.read(ctx, p)).Should(
					beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "v1.1.0 failed, given up:"))
				Expect(p.Status.Release).To(And(HaveField("Revision", 2), HaveField("Status", v1alpha2.RevisionFailed)))

				nodes := &corev1.NodeList{}
				Expect(w.client.List(ctx, nodes)).To(Succeed())
				Expect(
					w.client.Patch(
						ctx,
						&nodes.Items[0],
						client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"late":"node"}}}`)),
					),
				).To(Succeed())
				Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			},
		)

		It("because the API server would refuse an object changes nothing", func(ctx SpecContext) {
			good, bad := newTiny("rejected", "v1.0.0"), newTiny("rejected", "v1.1.0")
			extra := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: dropped, namespace: rejected-system}\n" +
				"data: {a: b}\n"
			good.components += extra
			bad.components = strings.Replace(bad.components, "replicas: 1", "replicas: -1", 1) +
				strings.Replace(extra, "dropped", "brought", 1)
			p := versions(ctx, quickly(0), good, bad)
			before := deployment(ctx, p.Name)

			upgrade(ctx, p, "v1.1.0")
			Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
				"the API server would refuse Deployment rejected/rejected-controller-manager, so nothing was changed: ",
				"greater than or equal to 0",
				"v1.0.0 runs; v1.1.0 is not applied: ",
			))
			Expect(w.helm(ctx, "helm", "history", "infrastructure-rejected", "-n", p.Namespace)).To(HaveLen(1))
			Expect(deployment(ctx, p.Name).Generation).To(Equal(before.Generation))
			Expect(w.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: "dropped"}, &corev1.ConfigMap{})).To(
				Succeed())
			Expect(w.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: "brought"}, &corev1.ConfigMap{})).To(
				MatchError(apierrors.IsNotFound, "IsNotFound"))

			By("requesting the old version")
			upgrade(ctx, p, "v1.0.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			Expect(p.Status.Release.Revision).To(Equal(1))
		})

		It("because a policy refuses to change an object recreates nothing", func(ctx SpecContext) {
			p := versions(ctx, quickly(0), newTiny("unchangeable", "v1.0.0"), newTiny("unchangeable", "v1.1.0"))
			before := deployment(ctx, p.Name)
			w.refuse(ctx, p.Namespace, rule("deployments", admissionv1.Update), admissionv1.Validation{Expression: "false"},
				func() error { return w.client.Patch(ctx, before, client.RawPatch(types.MergePatchType, []byte("{}"))) })

			upgrade(ctx, p, "v1.1.0")
			Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
				"the API server would refuse Deployment unchangeable/unchangeable-controller-manager", refusal))
			Expect(deployment(ctx, p.Name).UID).To(Equal(before.UID))
		})

		It("is not failed by a policy that keeps an object which it drops", func(ctx SpecContext) {
			good, better := newTiny("dropper", "v1.0.0"), newTiny("dropper", "v1.1.0")
			good.components += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: dropped, namespace: dropper-system}\n"
			p := versions(ctx, quickly(0), good, better)

			dropped := &corev1.ConfigMap{ObjectMeta: named(p.Namespace, "dropped")}
			allow := w.refuse(ctx, p.Namespace, rule("configmaps", admissionv1.Delete),
				admissionv1.Validation{Expression: "false"},
				func() error { return w.client.Delete(ctx, dropped, client.DryRunAll) })

			upgrade(ctx, p, "v1.1.0")
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.InstallFailedReason,
				"ConfigMap dropper/dropped could not be deleted", refusal))
			Expect(deployment(ctx, p.Name).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v1.1.0"))

			allow()
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			Expect(gone(ctx, w, dropped)()).To(BeTrue())
			Expect(w.helm(ctx, "helm", "history", "infrastructure-dropper", "-n", p.Namespace)).To(HaveLen(2))
		})

		It("because of a missing variable changes nothing", func(ctx SpecContext) {
			good, bad := newTiny("needy", "v1.0.0"), newTiny("needy", "v1.1.0")
			bad.components = strings.Replace(bad.components, "${TINY_LEVEL:=info}", "${TINY_LEVEL}", 1)
			p := versions(ctx, nil, good, bad)
			before := deployment(ctx, p.Name)
			upgrade(ctx, p, "v1.1.0")
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.MissingVariablesReason, "TINY_LEVEL"))
			Expect(deployment(ctx, p.Name).Generation).To(Equal(before.Generation))
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Variables = map[string]string{"TINY_LEVEL": "debug"} })
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		})
	})

	It("is rolled back to the revision in rollbackTo, and upgraded again without it", func(ctx SpecContext) {
		p := versions(ctx, nil, newTiny("back", "v1.0.0"), newTiny("back", "v1.1.0"))
		upgrade(ctx, p, "v1.1.0")
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(1)}
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(p.Status.Release.Revision).To(Equal(3))
		Expect(deployment(ctx, p.Name).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v1.0.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release.RollbackTo = new(9) })
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"no revision 9 to roll back to; its history has 1, 2, 3"))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Release = nil })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(p.Status.Release.Revision).To(Equal(4))
	})

	It("is downgraded in place", func(ctx SpecContext) {
		p := versions(ctx, nil, newTiny("down", "v1.1.0"), newTiny("down", "v1.0.0"))
		uid := deployment(ctx, p.Name).UID
		upgrade(ctx, p, "v1.0.0")
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(deployment(ctx, p.Name).UID).To(Equal(uid))
	})

	It("keeps a change made with helm, and reports how to accept or undo it", func(ctx SpecContext) {
		p := versions(ctx, nil, newTiny("frozen", "v1.0.0"), newTiny("frozen", "v1.1.0"))
		upgrade(ctx, p, "v1.1.0")
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		const release = "infrastructure-frozen"

		w.run(ctx, "helm", "rollback", release, "1", "-n", p.Namespace)
		Eventually(w.read(ctx, p)).Should(
			beReadyWith(v1alpha2.ExternalChangeReason,
				"v1.0.0 is healthy, held at revision 3 by another program (Rollback to 1); v1.1.0 is wanted; ",
				"to undo that, run `capstan reconcile infrastructure-frozen`",
				"to stay with v1.0.0, run `capstan rollback infrastructure-frozen --keep`",
			))
		Consistently(
			func() []helmRelease { return w.helm(ctx, "helm", "history", release, "-n", p.Namespace) },
		).WithTimeout(quietPeriod).
			Should(HaveLen(3))

		By("accepting it")
		upgrade(ctx, p, "v1.0.0")
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		By("uninstalling")
		w.run(ctx, "helm", "uninstall", release, "-n", p.Namespace)
		Eventually(w.read(ctx, p)).Should(
			notBeReady(v1alpha2.ExternalChangeReason,
				"not installed: another program uninstalled release frozen/infrastructure-frozen",
				"run `capstan reconcile infrastructure-frozen`", "delete this resource"))
		Expect(w.helm(ctx, "helm", "list", "-n", p.Namespace)).To(BeEmpty())
		Expect(p.Status.InstalledVersion).To(BeNil())
		Expect(p.Status.History).To(BeEmpty())
		Expect(p.Status.Release.Status).To(Equal(v1alpha2.RevisionUninstalled))
		Expect(conditions.Has(p, v1alpha2.ProviderUpgradedCondition)).To(BeFalse())

		By("uninstalling it again, with its history")

		request := func(value string) {
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: value})
			})
		}
		request("again")
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		w.run(ctx, "helm", "uninstall", release, "-n", p.Namespace, "--keep-history")
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.ExternalChangeReason, "not installed: another program uninstalled release"),
			notBeInstalled(v1alpha2.ExternalChangeReason),
			HaveField("Status.InstalledVersion", BeNil()),
			HaveField("Status.Release.Status", v1alpha2.RevisionUninstalled),
			HaveField("Status.History", HaveExactElements(HaveField("Status", v1alpha2.RevisionUninstalled))),
		))

		By("undoing it")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{OnExternalChange: v1alpha2.ExternalChangeRevert}
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"),
			HaveField("Status.Release.Status", v1alpha2.RevisionDeployed)))
	})

	It("undoes a change made with helm if the policy is Revert", func(ctx SpecContext) {
		const release = "infrastructure-reverted"

		p := versions(
			ctx,
			&v1alpha2.ReleaseSpec{OnExternalChange: v1alpha2.ExternalChangeRevert},
			newTiny("reverted", "v1.0.0"),
			newTiny("reverted", "v1.1.0"),
		)
		upgrade(ctx, p, "v1.1.0")
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		w.run(ctx, "helm", "rollback", release, "1", "-n", p.Namespace)
		Eventually(
			func() []helmRelease { return w.helm(ctx, "helm", "list", "-n", p.Namespace) },
		).Should(
			ConsistOf(HaveField("AppVersion", "v1.1.0")))
		w.run(ctx, "helm", "uninstall", release, "-n", p.Namespace)
		Eventually(
			func() []helmRelease { return w.helm(ctx, "helm", "list", "-n", p.Namespace) },
		).Should(
			ConsistOf(HaveField("AppVersion", "v1.1.0")))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
	})

	DescribeTable("that another program has uninstalled is installed as asked for while its source was away",
		func(ctx SpecContext, name, version string, ask func(v1alpha2.Provider)) {
			p := versions(ctx, nil, newTiny(name, "v1.0.0"))
			w.run(ctx, "helm", "uninstall", "infrastructure-"+name, "-n", p.Namespace)
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ExternalChangeReason, "another program uninstalled release"))
			Expect(w.client.Delete(ctx, newTiny(name, "v1.0.0").configMap())).To(Succeed())

			update(ctx, w, p, ask)
			Eventually(w.read(ctx, p)).Should(Or(notBeReady(v1alpha2.VersionNotFoundReason), beReady(version)))

			Expect(w.client.Create(ctx, newTiny(name, version).configMap())).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady(version))
		},
		Entry("by another version", "asked-version", "v1.1.0",
			func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" }),
		Entry("by the annotation", "asked-again", "v1.0.0", request("please")),
	)

	It("is upgraded only once the new version is healthy", func(ctx SpecContext) {
		late := newTiny("late", "v1.1.0")
		late.components = strings.Replace(
			late.components, "      containers:", "      nodeSelector: {late-upgrade: node}\n      containers:", 1)
		p := versions(ctx, nil, newTiny("late", "v1.0.0"), late)
		upgraded := haveCondition(v1alpha2.ProviderUpgradedCondition, metav1.ConditionTrue, v1alpha2.ProviderUpgradedReason)

		upgrade(ctx, p, "v1.1.0")
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ProgressingReason, "v1.1.0"))
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).ShouldNot(upgraded)

		w.run(ctx, "kubectl", "label", "nodes", "--all", "late-upgrade=node")
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"), upgraded))
	})

	It("is not changed or deleted while it is suspended", func(ctx SpecContext) {
		p := versions(ctx, nil, newTiny("suspended", "v1.0.0"), newTiny("suspended", "v1.1.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Suspend, p.GetSpec().Version = true, "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.SuspendedReason,
			"v1.0.0 is healthy; v1.1.0 is wanted; nothing is changed while spec.suspend is true"))
		Expect(bedtest.Edit(ctx, w.client, deployment(ctx, p.Name), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "such-node"}
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		})).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.SuspendedReason, "is not healthy"))
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.SuspendedReason, "the deletion waits"))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-suspended", "-n", p.Namespace)).To(HaveLen(1))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Suspend = false })
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	DescribeTable("keeps nothing of what another program has installed",
		func(ctx SpecContext, name string, leave func(context.Context, v1alpha2.Provider)) {
			first, second := newTiny(name, "v1.0.0"), newTiny(name, "v1.1.0")
			first.components += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: " + name + "-system}\n"
			p := versions(ctx, nil, first, second)
			extra := &corev1.ConfigMap{ObjectMeta: named(name, "extra")}

			upgrade(ctx, p, "v1.1.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			Eventually(gone(ctx, w, extra)).Should(BeTrue())

			w.run(ctx, "helm", "rollback", "infrastructure-"+name, "1", "-n", name)
			Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.ExternalChangeReason))
			Expect(gone(ctx, w, extra)()).To(BeFalse())

			leave(ctx, p)
			Eventually(gone(ctx, w, extra)).Should(BeTrue())
		},
		Entry("after the next upgrade", "returned", func(ctx context.Context, p v1alpha2.Provider) {
			update(ctx, w, p, request("now"))
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		}),
		Entry("after a rollback", "rolled-back", func(ctx context.Context, p v1alpha2.Provider) {
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(2)}
			})
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		}),
		Entry("once the resource is gone", "removed", func(ctx context.Context, p v1alpha2.Provider) {
			Expect(w.client.Delete(ctx, p)).To(Succeed())
			Eventually(gone(ctx, w, p)).Should(BeTrue())
		}),
	)

	It("runs no managers while it is paused, and can still be upgraded", func(ctx SpecContext) {
		three := func(t tiny) tiny {
			t.components = strings.Replace(t.components, "replicas: 1", "replicas: 3", 1)
			return t
		}
		p := versions(ctx, nil, three(newTiny("paused", "v1.0.0")), three(newTiny("paused", "v1.1.0")))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused = true })
		Eventually(w.read(ctx, p)).Should(And(
			beReadyWith(v1alpha2.PausedReason,
				"v1.0.0 is paused",
			),
			haveCondition(v1alpha2.PausedCondition, metav1.ConditionTrue, v1alpha2.PausedReason),
		))
		Expect(deployment(ctx, p.Name).Spec.Replicas).To(HaveValue(BeZero()))
		Expect(deployment(ctx, p.Name).Annotations).To(HaveKeyWithValue("capstan.dev/paused-replicas", "3"))

		upgrade(ctx, p, "v1.1.0")
		Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.PausedReason, "v1.1.0 is paused"))
		Expect(deployment(ctx, p.Name).Spec.Replicas).To(HaveValue(BeZero()))

		By("not calling it paused after another program has scaled a Deployment")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftOff}
		})

		scale := func(replicas int32) {
			d := deployment(ctx, p.Name)
			Expect(bedtest.Edit(ctx, w.client, d, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })).To(Succeed())
		}
		scale(1)
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.UnhealthyReason, "has spec.replicas 1 instead of 0"),
			Not(haveConditionType(v1alpha2.PausedCondition)),
		))
		scale(0)
		Eventually(w.read(ctx, p)).Should(And(
			beReadyWith(v1alpha2.PausedReason), haveConditionType(v1alpha2.PausedCondition),
		))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Paused = false })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(deployment(ctx, p.Name).Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(deployment(ctx, p.Name).Annotations).NotTo(HaveKey("capstan.dev/paused-replicas"))
	})

	It("keeps as many revisions as asked for, in Helm's storage and in the status", func(ctx SpecContext) {
		const limit = 3

		p := versions(ctx, &v1alpha2.ReleaseSpec{HistoryLimit: new(int32(limit)), Retries: new(int32(0))},
			newTiny("bounded", "v1.0.0"))

		for i := range 2 * limit {
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.GetSpec().Variables = map[string]string{"TINY_LEVEL": fmt.Sprint(i)}
			})
			Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.Release.Revision", i+2)))
		}

		secrets := &corev1.SecretList{}
		Expect(w.client.List(ctx, secrets, client.InNamespace(p.Namespace), client.MatchingLabels{"owner": "helm"})).To(
			Succeed())
		Expect(secrets.Items).To(HaveLen(limit))
		Expect(p.Status.History).To(HaveLen(limit))
	})

	It("keeps the release after two failed upgrades, with the shortest history that there is", func(ctx SpecContext) {
		spec := quickly(0)
		spec.HistoryLimit = new(int32(2))

		short := newTiny("twice-failed", "v1.0.0").resource()
		short.Namespace, short.Spec.Release = metav1.NamespaceDefault, spec
		Expect(w.client.Create(ctx, short, client.DryRunAll)).To(MatchError(ContainSubstring(
			"failed attempts do not push the last healthy revision out of the history")))

		spec.HistoryLimit = new(int32(3))
		p := versions(ctx, spec, newTiny("twice-failed", "v1.0.0"), neverRunning(newTiny("twice-failed", "v1.1.0")),
			neverRunning(newTiny("twice-failed", "v1.2.0")))
		uid := deployment(ctx, p.Name).UID
		seen := w.observeOutages(ctx, "infrastructure-twice-failed")

		for _, version := range []string{"v1.1.0", "v1.2.0"} {
			upgrade(ctx, p, version)
			Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason,
				"v1.0.0 runs; "+version+" failed, given up: "))
		}

		history := w.helm(ctx, "helm", "history", "infrastructure-twice-failed", "-n", p.Namespace)
		Expect(history[len(history)-1]).To(And(HaveField("Status", "deployed"), HaveField("AppVersion", "v1.0.0")))
		Expect(deployment(ctx, p.Name).UID).To(Equal(uid))

		_, least := seen()
		Expect(least).To(BeEquivalentTo(1), "the old version was available throughout")
	})
})
