package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// Kubernetes 1.37 migrates objects by itself, if a user asks for it; 1.36 does so behind a feature gate.
var _ = Describe("Kubernetes' own storage version migration", Ordered, func() {
	var (
		w *world
		p *v1alpha2.InfrastructureProvider
	)

	// delay makes each write of an object take so long that both migrations are at work when the second begins.
	const objects, delay = 200, 40 * time.Millisecond

	first := newTiny("rewritten", "v1.0.0")
	both := newTiny("rewritten", "v1.1.0").serving("v2", "v1")
	last := newTiny("rewritten", "v1.2.0").serving("v2")

	BeforeAll(func(ctx SpecContext) {
		const gate = "--feature-gates=StorageVersionMigrator=true"

		w = emptyWorld(bed.Options{
			CRDs:                   harness.OwnCRDs(),
			APIServerFlags:         []string{gate, "--runtime-config=storagemigration.k8s.io/v1beta1=true"},
			ControllerManagerFlags: []string{gate},
		})
		w.start()
		w.installCore(ctx)

		for _, t := range []tiny{first, both, last} {
			w.offer(ctx, t)
		}

		p = first.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady(first.version))

		slow := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(delay)
			(&webhooks{}).ServeHTTP(rw, r)
		}))
		DeferCleanup(slow.Close)

		group, creating := errgroup.WithContext(ctx)
		group.SetLimit(10)

		for i := range objects {
			group.Go(func() error { return w.client.Create(creating, first.object("v1", fmt.Sprint("object-", i))) })
		}

		Expect(group.Wait()).To(Succeed())

		configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named("", "slow")}
		configuration.Webhooks = []admissionv1.ValidatingWebhook{{
			Name: "slow.example.com", SideEffects: new(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{
				URL:      &slow.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: slow.Certificate().Raw}),
			},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, APIVersions: []string{"*"},
					Resources: []string{first.plural()},
				},
			}},
		}}
		Expect(w.client.Create(ctx, configuration)).To(Succeed())
	})

	// objectsIn returns the objects in a version.
	objectsIn := func(ctx context.Context, version string) []unstructured.Unstructured {
		GinkgoHelper()

		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(first.inVersion(version).GroupVersionKind())
		Expect(w.client.List(ctx, list)).To(Succeed())

		return list.Items
	}

	// rewrites returns the requests that have rewritten objects.
	rewrites := func() []bed.Request {
		GinkgoHelper()

		return must(w.bed.Requests(func(r bed.Request) bool {
			return r.Resource == first.plural() && r.Verb == "patch" && r.Code < 300
		}))
	}

	// migrated returns the conditions of a migration that are True.
	migrated := func(ctx context.Context, migration *unstructured.Unstructured) func(Gomega) []string {
		return func(g Gomega) (found []string) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(migration), migration)).To(Succeed())

			conditions, _, _ := unstructured.NestedSlice(migration.Object, "status", "conditions")
			for _, c := range conditions {
				if condition := c.(map[string]any); condition["status"] == "True" {
					found = append(found, condition["type"].(string))
				}
			}

			return found
		}
	}

	It("and Capstan's rewrite the same objects at once, and both succeed", func(ctx SpecContext) {
		before := map[string]any{}
		for _, o := range objectsIn(ctx, "v1") {
			before[o.GetName()] = o.Object["spec"]
		}

		Expect(before).To(HaveLen(objects))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = both.version })
		Eventually(w.read(ctx, p)).Should(beReady(both.version))

		migration := &unstructured.Unstructured{}
		migration.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: "StorageVersionMigration",
		})
		migration.SetName("rewritten")
		migration.Object["spec"] = map[string]any{"resource": map[string]any{
			"group": "infrastructure.cluster.x-k8s.io", "resource": first.plural(),
		}}
		Expect(w.client.Create(ctx, migration)).To(Succeed())
		Eventually(rewrites).ShouldNot(BeEmpty())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = last.version })

		Eventually(w.read(ctx, p)).Should(And(beReady(last.version), haveCondition(
			v1alpha2.CRDsMigratedCondition, metav1.ConditionTrue, v1alpha2.CRDsMigratedReason)))
		Eventually(migrated(ctx, migration)).Should(ConsistOf("Succeeded"))
		Expect(w.definition(ctx, first.crd()).Status.StoredVersions).To(Equal([]string{"v2"}))

		after := map[string]any{}
		for _, o := range objectsIn(ctx, "v2") {
			after[o.GetName()] = o.Object["spec"]
			Expect(o.GetGeneration()).To(BeEquivalentTo(1), o.GetName())
		}

		Expect(after).To(Equal(before))

		all := rewrites()
		others := slices.IndexFunc(all, func(r bed.Request) bool { return r.User != all[0].User })
		Expect(others).To(BeNumerically(">", 0), "Capstan has rewritten objects, too")
		Expect(all[others:]).To(ContainElement(HaveField("User", all[0].User)), "at the same time")
	})
})
