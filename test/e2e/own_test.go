package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// ownWebhook is a manager's webhook for objects of its own kinds.
type ownWebhook struct {
	*httptest.Server
	answers atomic.Bool
}

// startOwnWebhook starts a webhook that fails until it answers.
func startOwnWebhook() *ownWebhook {
	h := &ownWebhook{}
	h.Server = httptest.NewTLSServer(h)
	DeferCleanup(h.Close)

	return h
}

// ServeHTTP admits everything.
func (h *ownWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.answers.Load() {
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}

	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// configuration returns the components that register the webhook for the kind of a provider.
func (h *ownWebhook) configuration(t tiny) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})

	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: guard.example.com
  clientConfig: {url: "%s/validate", caBundle: %s}
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 5
  rules: [{apiGroups: [%s], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [%s]}]
`, t.name, h.URL, base64.StdEncoding.EncodeToString(ca), t.inVersion("v1").GroupVersionKind().Group, t.plural())
}

var _ = Describe("Objects of a provider's own kinds", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// withOwn returns a provider with an object of its own kind that has a finalizer.
	withOwn := func(name, version string) tiny {
		t := newTiny(name, version)
		t.components += fmt.Sprintf("---\napiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: %s\n"+
			"metadata: {name: own, namespace: %s-system, finalizers: [example.com/manager]}\n", t.kind(), name)

		return t
	}
	own := func(t tiny) client.Object {
		o := t.inVersion("v1")
		o.SetNamespace(t.name)
		o.SetName("own")

		return o
	}

	It("are applied once its webhook answers, by the first revision", func(ctx SpecContext) {
		webhook := startOwnWebhook()
		t := withOwn("first", "v1.0.0")
		t.components += webhook.configuration(t)
		w.offer(ctx, t)
		p := t.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ProgressingReason,
			t.kind()+" own: could not be applied yet", "failed calling webhook"))

		webhook.answers.Store(true)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(own(t)), own(t))).To(Succeed())
		Expect(w.run(ctx, "helm", "history", "infrastructure-first", "-n", "first", "-o", "json")).To(And(
			ContainSubstring(`"revision":1`), Not(ContainSubstring(`"revision":2`))))
	})

	It("are gone before an upgrade deletes what else it drops", func(ctx SpecContext) {
		dropped := corev1.ConfigMap{}
		dropped.Namespace, dropped.Name = "second", "dropped"

		t := withOwn("second", "v1.0.0")
		t.components += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: dropped, namespace: second-system}\n"
		w.offer(ctx, t)
		p := t.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		w.offer(ctx, newTiny("second", "v1.1.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ProgressingReason,
			t.kind()+" own: is no longer part of the release", "example.com/manager"))
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(&dropped), &dropped)).To(Succeed())

		Expect(bedtest.Edit(ctx, w.client, own(t), func(object client.Object) {
			object.SetFinalizers(nil)
		})).To(Succeed(), "as the manager does")
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(strings.TrimSpace(w.run(ctx, "kubectl", "get", "configmaps", "-n", "second", "-o", "name"))).NotTo(
			ContainSubstring("dropped"))
	})
})
