package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/test/faults"
)

// lost is a provider whose resource loses what it knows of it while the operator does not run.
type lost struct {
	p    *v1alpha2.InfrastructureProvider
	tiny tiny
	// status and records are set if these are lost.
	status, records bool
}

// lostVersion returns a version of a provider with objects that only this version has, some in each group of kinds.
func lostVersion(name, version string) tiny {
	t := newTiny(name, version).withConfigMaps(2)
	suffix := strings.ReplaceAll(version, ".", "-")
	t.components += fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-only-%[2]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: %[3]s
metadata: {name: only-%[2]s, namespace: %[1]s-system}
`, name, suffix, t.kind())

	return t
}

// objects returns the names of the objects of lostVersion, and "records" for Helm's.
func (t tiny) objects(version string) []string {
	suffix := strings.ReplaceAll(version, ".", "-")

	return []string{
		"config-0-" + suffix, "config-1", "only-" + suffix, t.name + "-only-" + suffix,
		t.name + "-manager", t.name + "-controller-manager", "records",
	}
}

// remains returns which of these exist. Those of the provider's own kind are left out while it cannot be listed.
func (w *world) remains(ctx context.Context, t tiny) func(Gomega) []string {
	return func(g Gomega) []string {
		found := []string{}
		marks := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: "infrastructure-" + t.name}

		own := &unstructured.UnstructuredList{}
		own.SetGroupVersionKind(t.inVersion("v1").GroupVersionKind())

		for _, list := range []client.ObjectList{
			&corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}, &corev1.ServiceAccountList{}, &appsv1.DeploymentList{}, own,
		} {
			err := w.client.List(ctx, list, marks)
			if list == own && object.IsUnconverted(err) {
				continue
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(apimeta.EachListItem(list, func(o runtime.Object) error {
				found = append(found, o.(client.Object).GetName())
				return nil
			})).To(Succeed())
		}

		records := &corev1.SecretList{}
		g.Expect(w.client.List(ctx, records, client.InNamespace(t.name), client.MatchingLabels{"owner": "helm"})).
			To(Succeed())

		if len(records.Items) > 0 {
			found = append(found, "records")
		}

		return found
	}
}

var _ = Describe("A provider whose resource has lost", Ordered, ContinueOnFailure, func() {
	const (
		first, second = "v1.0.0", "v1.1.0"
		// delay is how long a slow list of ClusterRoles takes.
		delay = 25 * time.Second
	)

	var (
		w   *world
		all []*lost
	)

	remove := func(ctx context.Context, l *lost) { Expect(w.client.Delete(ctx, l.p)).To(Succeed()) }
	change := func(ctx context.Context, l *lost, version string) {
		update(ctx, w, l.p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
	}
	suspend := func(ctx context.Context, l *lost, suspended bool) {
		update(ctx, w, l.p, func(p v1alpha2.Provider) { p.GetSpec().Suspend = suspended })
	}
	use := func(ctx context.Context, l *lost) {
		Expect(w.client.Create(ctx, l.tiny.object("v1", l.tiny.name))).To(Succeed())
	}
	unuse := func(ctx context.Context, l *lost) {
		Expect(w.client.Delete(ctx, l.tiny.object("v1", l.tiny.name))).To(Succeed())
	}

	isGone := func(ctx context.Context, l *lost) {
		GinkgoHelper()
		Eventually(gone(ctx, w, l.p)).Should(BeTrue())
		Expect(w.remains(ctx, l.tiny)(Default)).To(BeEmpty())
	}
	isInstalled := func(ctx context.Context, l *lost, version string) {
		GinkgoHelper()
		Eventually(w.read(ctx, l.p)).Should(beReady(version))
		Expect(w.remains(ctx, l.tiny)(Default)).To(ConsistOf(l.tiny.objects(version)))
	}
	isBlocked := func(ctx context.Context, l *lost, parts ...string) {
		GinkgoHelper()
		Eventually(w.read(ctx, l.p)).Should(notBeReady(v1alpha2.DeletionBlockedReason, parts...))
	}

	losses := []struct {
		what            string
		status, records bool
	}{{"its status", true, false}, {"its status and records", true, true}, {"its records", false, true}}

	// cases are what happens to a provider: what is asked for while the operator does not run, and what follows.
	cases := []struct {
		does, name string
		from       string
		ask, then  func(context.Context, *lost)
	}{
		{
			does: "is removed with all objects", name: "removed", from: second,
			ask: remove, then: isGone,
		},
		{
			does: "is removed with all objects after it was in use", name: "used", from: second,
			ask: func(ctx context.Context, l *lost) { use(ctx, l); remove(ctx, l) },
			then: func(ctx context.Context, l *lost) {
				isBlocked(ctx, l, "1 object still exists")
				Expect(w.remains(ctx, l.tiny)(Default)).To(ContainElements(l.tiny.name+"-only-v1-1-0", "only-v1-1-0"))
				unuse(ctx, l)
				isGone(ctx, l)
			},
		},
		{
			does: "is removed with all objects after it was suspended", name: "suspended", from: second,
			ask: func(ctx context.Context, l *lost) { suspend(ctx, l, true) },
			then: func(ctx context.Context, l *lost) {
				Eventually(w.read(ctx, l.p)).Should(notBeReady(v1alpha2.SuspendedReason))
				remove(ctx, l)
				Eventually(w.read(ctx, l.p)).Should(notBeReady(v1alpha2.SuspendedReason, "the deletion waits"))
				suspend(ctx, l, false)
				isGone(ctx, l)
			},
		},
		{
			does: "is upgraded, and what the new version does not have is deleted", name: "upgraded", from: first,
			ask:  func(ctx context.Context, l *lost) { change(ctx, l, second) },
			then: func(ctx context.Context, l *lost) { isInstalled(ctx, l, second) },
		},
		{
			does: "is upgraded once that can be planned", name: "planned", from: first,
			ask: func(ctx context.Context, l *lost) { change(ctx, l, "v1.1.1") },
			then: func(ctx context.Context, l *lost) {
				Eventually(w.read(ctx, l.p)).Should(notBeReady(v1alpha2.VersionNotFoundReason))
				change(ctx, l, second)
				isInstalled(ctx, l, second)
			},
		},
		{
			does: "is downgraded, and what the old version does not have is deleted", name: "downgraded", from: second,
			ask:  func(ctx context.Context, l *lost) { change(ctx, l, first) },
			then: func(ctx context.Context, l *lost) { isInstalled(ctx, l, first) },
		},
		{
			does: "is removed with all objects although lists take long", name: "slow-removed", from: second,
			ask: remove, then: isGone,
		},
		{
			does: "is upgraded although lists take long", name: "slow-upgraded", from: first,
			ask:  func(ctx context.Context, l *lost) { change(ctx, l, second) },
			then: func(ctx context.Context, l *lost) { isInstalled(ctx, l, second) },
		},
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		faulty := faults.New(uint64(GinkgoRandomSeed()))
		faulty.Slow(func(r *http.Request) time.Duration {
			query := r.URL.Query()
			if strings.HasSuffix(r.URL.Path, "/clusterroles") && query.Has("limit") &&
				strings.Contains(query.Get("labelSelector"), "infrastructure-lost-slow-") {
				return delay
			}

			return 0
		})

		for _, c := range cases {
			for _, loss := range losses {
				l := &lost{status: loss.status, records: loss.records}
				l.tiny = lostVersion(fmt.Sprintf("lost-%s-%d", c.name, len(all)), c.from)
				l.p = l.tiny.resource()
				all = append(all, l)

				for _, o := range []client.Object{
					l.tiny.namespace(), lostVersion(l.tiny.name, first).configMap(), lostVersion(l.tiny.name, second).configMap(),
					l.p,
				} {
					Expect(w.client.Create(ctx, o)).To(Succeed())
				}
			}
		}

		for _, l := range all {
			Eventually(w.read(ctx, l.p)).Should(beReady(l.tiny.version))
			Expect(w.remains(ctx, l.tiny)(Default)).To(ConsistOf(l.tiny.objects(l.tiny.version)))
		}

		w.restartBehind(faulty, func() {
			for i, l := range all {
				if l.status {
					w.loseStatus(ctx, l.p)
				}

				if l.records {
					w.loseRecords(ctx, l.p)
				}

				cases[i/len(losses)].ask(ctx, l)
			}
		})
	})

	for i, c := range cases {
		for j, loss := range losses {
			It(loss.what+" "+c.does, func(ctx SpecContext) { c.then(ctx, all[i*len(losses)+j]) })
		}
	}
})

var _ = Describe("A provider whose resource has lost its status while its objects cannot be converted", Ordered,
	ContinueOnFailure, func() {
		const first, second = "v1.0.0", "v1.1.0"

		var w *world

		BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

		// lose installs a provider, of whose kind there is one more object, and breaks the conversion of both. Then its
		// resource loses its status, and its release the records.
		lose := func(
			ctx context.Context, name string, ask func(*v1alpha2.InfrastructureProvider),
		) (tiny, *v1alpha2.InfrastructureProvider) {
			GinkgoHelper()

			t := lostVersion(name, first)
			p := t.resource()
			p.Spec.Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftOff} // the CRD would be restored

			for _, o := range []client.Object{t.namespace(), t.configMap(), lostVersion(name, second).configMap(), p} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}

			Eventually(w.read(ctx, p)).Should(beReady(first))
			Expect(w.client.Create(ctx, t.object("v1", "old"))).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				repairConversion(ctx, w, t)
				Expect(client.IgnoreNotFound(w.client.Delete(ctx, t.object("v2", "old")))).To(Succeed())
			})
			breakConversion(ctx, w, t)

			Expect(w.operator.Stop()).To(Succeed())
			w.loseStatus(ctx, p)
			w.loseRecords(ctx, p)
			ask(p)
			w.start()

			return t, p
		}
		remove := func(ctx context.Context) func(*v1alpha2.InfrastructureProvider) {
			return func(p *v1alpha2.InfrastructureProvider) { Expect(w.client.Delete(ctx, p)).To(Succeed()) }
		}
		isBlocked := func(ctx context.Context, p v1alpha2.Provider, parts ...string) {
			GinkgoHelper()
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason, parts...))
		}

		It("is removed with them once they can be", func(ctx SpecContext) {
			t, p := lose(ctx, "lost-repaired", remove(ctx))
			isBlocked(ctx, p, t.crd()+" cannot be listed yet", "Service default/missing", "repair the webhook's server",
				v1alpha2.DeleteInUseAnnotation)
			repairConversion(ctx, w, t)
			isBlocked(ctx, p, "1 object still exists")
			Expect(w.client.Delete(ctx, t.object("v2", "old"))).To(Succeed())
			Eventually(gone(ctx, w, p)).Should(BeTrue())
			Expect(w.remains(ctx, t)(Default)).To(BeEmpty())
		})

		It("is removed without them if an annotation allows it, and an event says so", func(ctx SpecContext) {
			t, p := lose(ctx, "lost-unconverted", remove(ctx))
			isBlocked(ctx, p, t.crd()+" cannot be listed yet")
			Consistently(gone(ctx, w, p)).WithTimeout(3 * quietPeriod).Should(BeFalse())
			Expect(w.remains(ctx, t)(Default)).To(ContainElements(t.name + "-controller-manager"))

			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.DeleteInUseAnnotation: "true"})
			})
			Eventually(gone(ctx, w, p)).Should(BeTrue())
			Expect(w.events(ctx, p)(Default)).To(ContainElement(And(
				HaveField("Reason", v1alpha2.ReleaseKeptReason), HaveField("Note", ContainSubstring(t.crd())))))

			repairConversion(ctx, w, t)
			Eventually(w.remains(ctx, t)).Should(ConsistOf("only-v1-0-0"))
		})
	})

// loseStatus removes the status of a resource.
func (w *world) loseStatus(ctx context.Context, p v1alpha2.Provider) {
	GinkgoHelper()

	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/status", "value": {}}]`))
	Expect(w.client.Status().Patch(ctx, p, patch)).To(Succeed())
}

// loseRecords deletes Helm's records of a provider's release.
func (w *world) loseRecords(ctx context.Context, p v1alpha2.Provider) {
	GinkgoHelper()
	Expect(w.client.DeleteAllOf(ctx, &corev1.Secret{},
		client.InNamespace(p.GetNamespace()), client.MatchingLabels{"owner": "helm"})).To(Succeed())
}
