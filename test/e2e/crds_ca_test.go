package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract/audit/audittest"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
)

// injectFrom is cert-manager's annotation of what it injects a CA into.
const injectFrom = "cert-manager.io/inject-ca-from"

// withPlaceholder returns a tiny provider in the shape of digitalocean: its CRD has a conversion webhook, whose CA
// cert-manager injects in place of what kubebuilder's scaffold used to write, a line break.
func (t tiny) withPlaceholder() tiny {
	t.components = strings.Replace(t.components, "\nspec:\n  group:", fmt.Sprintf(
		"\n  annotations: {%s: %[2]s-system/%[2]s-serving-cert}\nspec:\n  group:", injectFrom, t.name), 1)
	t.components = strings.Replace(t.components, "  scope: Namespaced\n", fmt.Sprintf(`  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {caBundle: Cg==, service: {name: %[1]s-webhook, namespace: %[1]s-system, path: /convert}}
`, t.name), 1)
	t.components += fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s-webhook, namespace: %[1]s-system}
spec: {selector: {app: %[1]s}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: %[1]s-serving-cert, namespace: %[1]s-system}
spec: {secretName: %[1]s-cert, dnsNames: [%[1]s-webhook], issuerRef: {kind: Issuer, name: %[1]s-issuer}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: %[1]s-issuer, namespace: %[1]s-system}
spec: {selfSigned: {}}
`, t.name)

	return t
}

// issued returns the Secret that cert-manager writes for the Certificate of a provider.
func (t tiny) issued(ca []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.name, Name: t.name + "-cert",
			Annotations: map[string]string{v1alpha2.CertificateNameAnnotation: t.name + "-serving-cert"},
		},
		Data: map[string][]byte{"ca.crt": ca},
	}
}

// startInjecting runs cert-manager's cainjector until the function that it returns is called, or the spec or container
// that calls it ends.
func (w *world) startInjecting(ctx context.Context) (stop func()) {
	GinkgoHelper()

	injector := w.bed.Command(context.WithoutCancel(ctx), tools.Cainjector, "-v=2")
	injector.Stdout, injector.Stderr = GinkgoWriter, GinkgoWriter
	Expect(w.bed.Launch(injector)).To(Succeed())

	stop = sync.OnceFunc(func() {
		_ = injector.Process.Kill() // fails only if it has ended
		_ = injector.Wait()
	})
	DeferCleanup(stop)

	return stop
}

var _ = Describe("CRDs with a placeholder for the CA that cert-manager injects", Ordered, everyKubernetes, func() {
	var (
		w  *world
		ca []byte
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		var err error

		ca, err = audittest.Certificate(time.Hour)
		Expect(err).NotTo(HaveOccurred())

		w.startInjecting(ctx)
	})

	before := newTiny("ocean", "v1.0.0").withPlaceholder()
	after := newTiny("ocean", "v1.1.0").serving("v1", "v2").withPlaceholder()
	p := before.resource()

	// injected returns the path of a CRD's webhook, once the CRD has the CA, and not by the operator.
	injected := func(name string) func(Gomega, SpecContext) string {
		return func(g Gomega, ctx SpecContext) string {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())
			g.Expect(crd.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(ca))

			for _, entry := range crd.ManagedFields {
				if entry.Manager == v1alpha2.FieldOwner {
					g.Expect(string(entry.FieldsV1.GetRawBytes())).NotTo(ContainSubstring("caBundle"))
				}
			}

			return *crd.Spec.Conversion.Webhook.ClientConfig.Service.Path
		}
	}

	It("are installed", func(ctx SpecContext) {
		w.offer(ctx, before)
		Expect(w.client.Create(ctx, before.issued(ca))).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady(before.version))
		Eventually(injected(before.crd())).WithContext(ctx).Should(Equal("/convert"))
	})

	It("are upgraded", func(ctx SpecContext) {
		w.offer(ctx, after)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = after.version })
		Eventually(w.read(ctx, p)).Should(beReady(after.version))
		Expect(names(w.definition(ctx, after.crd()))).To(HaveExactElements("v1", "v2"))
		Expect(injected(after.crd())(Default, ctx)).To(Equal("/convert"))
	})

	It("are corrected", func(ctx SpecContext) {
		w.editDefinition(ctx, after.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ClientConfig.Service.Path = new("/wrong")
		}, client.FieldOwner("kubectl-edit"))
		Eventually(injected(after.crd())).WithContext(ctx).Should(Equal("/convert"))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.DriftCorrectedReason), HaveField("Note", ContainSubstring(after.crd())))))
		Eventually(w.read(ctx, p)).Should(And(beReady(after.version), Not(haveCondition(v1alpha2.DriftedCondition,
			metav1.ConditionTrue, v1alpha2.DriftNotCorrectedReason))))
	})

	It("are adopted", func(ctx SpecContext) {
		t := newTiny("adopted-ocean", "v1.0.0").withPlaceholder()
		adopted := t.resource()

		w.offer(ctx, t)
		w.createComponents(ctx, t, "clusterctl")
		Expect(w.client.Create(ctx, t.issued(ca))).To(Succeed())
		Eventually(injected(t.crd())).WithContext(ctx).Should(Equal("/convert"))

		Expect(w.client.Create(ctx, adopted)).To(Succeed())
		Eventually(w.read(ctx, adopted)).Should(beReady(t.version))
		Expect(injected(t.crd())(Default, ctx)).To(Equal("/convert"))
	})

	It("are never sent with the placeholder, which the API server would refuse", func() {
		Expect(w.operatorWrites(func(r bed.Request) bool {
			return r.Resource == "customresourcedefinitions" && strings.Contains(r.Name, "oceans.") && r.Code >= 400
		})).To(BeEmpty())
	})
})
