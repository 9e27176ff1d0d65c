package contracts_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// startPod creates the Pod of the Deployment, as Kubernetes does, and returns why the API server rejects it.
func startPod(t *testing.T, r *release) string {
	g := NewWithT(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.bundle.Provider.Name + "-system"}}
	g.Expect(r.client.Create(t.Context(), ns)).To(Succeed())

	pod := &unstructured.Unstructured{}

	for _, o := range parse(t, r.bundle.Components) {
		switch o.GetKind() {
		case "ServiceAccount":
			g.Expect(r.client.Create(t.Context(), o)).To(Succeed())
		case "Deployment":
			template, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
			pod.Object = template
			pod.SetAPIVersion("v1")
			pod.SetKind("Pod")
			pod.SetNamespace(ns.Name)
			pod.SetName("pod")
		}
	}

	return errorText(r.client.Create(t.Context(), pod))
}

// callWebhook creates an object for which the API server calls the webhook, and returns why it rejects it. Nothing
// responds for the Service, if there is one.
func callWebhook(t *testing.T, r *release) string {
	return r.admit(t, func(*unstructured.Unstructured, map[string]any) {}, func() bool { return false })
}

// trustWebhook does the same with a webhook that responds, after the CA was injected as cert-manager does it: from the
// Certificate that the annotation names.
func trustWebhook(t *testing.T, r *release) string {
	var calls atomic.Int32

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)

		review := &admissionv1.AdmissionReview{}
		_ = json.NewDecoder(req.Body).Decode(review)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)

	certificates := map[string]bool{}

	for _, o := range parse(t, r.bundle.Components) {
		if o.GetKind() == "Certificate" {
			certificates[o.GetNamespace()+"/"+o.GetName()] = true
		}
	}

	inject := func(o *unstructured.Unstructured, webhook map[string]any) {
		call := map[string]any{"url": server.URL}
		if certificates[o.GetAnnotations()["cert-manager.io/inject-ca-from"]] {
			call["caBundle"] = encoded(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		}

		webhook["clientConfig"] = call
		webhook["timeoutSeconds"] = int64(30)
	}

	return r.admit(t, inject, func() bool { return calls.Load() > 0 })
}

// admit creates objects until one is rejected, or admitted by the webhook: the API server notices its configuration
// after a moment. It returns why the last one is rejected.
func (r *release) admit(
	t *testing.T,
	edit func(o *unstructured.Unstructured, webhook map[string]any),
	called func() bool,
) string {
	g := NewWithT(t)
	r.install(t)

	for _, o := range r.objects {
		if o.GetKind() == "ValidatingWebhookConfiguration" {
			webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			edit(o, webhooks[0].(map[string]any))
			g.Expect(unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")).To(Succeed())
			g.Expect(r.client.Create(t.Context(), o)).To(Succeed())
		}
	}

	var rejected string

	g.Eventually(func() bool {
		o := r.newObject(t, "MachinePool", map[string]any{})
		o.SetName("")
		o.SetGenerateName(r.bundle.Provider.Name + "-")
		rejected = errorText(r.client.Create(t.Context(), o))

		return rejected != "" && !strings.Contains(rejected, "no matches for kind") || called()
	}).WithTimeout(timeout).Should(BeTrue())

	return rejected
}

// createTemplate creates the object of the provider in the ClusterClass file, and returns why that is rejected.
func createTemplate(t *testing.T, r *release) string {
	r.install(t)

	for _, f := range r.bundle.Templates {
		if f.Name != "clusterclass-quick.yaml" {
			continue
		}

		for _, o := range parse(t, f.Data) {
			if o.GetKind() == "ClusterClass" {
				continue
			}

			o.SetNamespace(namespace)
			o.SetName(r.bundle.Provider.Name)

			var err error

			NewWithT(t).Eventually(func() bool {
				err = r.client.Create(t.Context(), o)
				return err == nil || meta.IsNoMatchError(err)
			}).WithTimeout(timeout).Should(BeTrue(), "%v", err)

			return errorText(err)
		}
	}

	return ""
}
