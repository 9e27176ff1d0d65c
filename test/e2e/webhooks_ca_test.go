package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract/audit/audittest"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// withWebhook returns a tiny provider with another webhook configuration that cert-manager injects a CA into.
func (t tiny) withWebhook(kind string) tiny {
	t.components += fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: %[2]sWebhookConfiguration
metadata:
  name: %[1]s-%[4]s
  annotations: {%[3]s: %[1]s-system/%[1]s-serving-cert}
webhooks:
- name: %[1]s.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: %[1]s-webhook, namespace: %[1]s-system, path: /admit}}
  rules:
  - {apiGroups: [%[1]s.example.com], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}
`, t.name, kind, injectFrom, strings.ToLower(kind))

	return t
}

var _ = Describe("Webhooks whose CA cert-manager injects", Ordered, func() {
	var (
		w             *world
		first, second []byte
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		first, second = must(audittest.Certificate(time.Hour)), must(audittest.Certificate(time.Hour))
	})

	before := newTiny("called", "v1.0.0").withPlaceholder().withWebhook("Validating")
	after := newTiny("called", "v1.1.0").withPlaceholder().withWebhook("Validating").withWebhook("Mutating")
	p := before.resource()
	p.Spec.Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 10 * time.Second}}

	// lack matches a provider whose webhooks lack a CA.
	lack := func(reason, problem string, parts ...string) types.GomegaMatcher {
		parts = append(parts, problem+" since ", "that of Secret called/called-cert is missing in ",
			"; cert-manager's cainjector injects it, and its log may say why it does not")

		return And(
			haveCondition(v1alpha2.ReadyCondition, metav1.ConditionFalse, v1alpha2.UnhealthyReason, parts...),
			haveCondition(v1alpha2.WebhooksTrustedCondition, metav1.ConditionFalse, reason, problem+": that of Secret "))
	}
	trusted := haveCondition(v1alpha2.WebhooksTrustedCondition, metav1.ConditionTrue, v1alpha2.CAInjectedReason)

	It("are no problem where nothing is injected", func(ctx SpecContext) {
		w.offer(ctx, before)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			beReady("v1.0.0"), Not(haveConditionType(v1alpha2.WebhooksTrustedCondition))))
	})

	It("keep the provider from being ready while they have no CA, though there is one", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, before.issued(first))).To(Succeed())
		Eventually(w.read(ctx, p)).Should(lack(v1alpha2.CAMissingReason, "webhooks have no CA",
			"v1.0.0 is not healthy: ", "CustomResourceDefinition "+before.crd(), ", ValidatingWebhookConfiguration called-"))

		w.startInjecting(ctx)
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), trusted))
	})

	It("fail an upgrade after which they have no CA any longer", func(ctx SpecContext) {
		w.offer(ctx, after)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(haveCondition(v1alpha2.ReadyCondition, metav1.ConditionFalse,
			v1alpha2.ProgressingReason, "applying v1.1.0: webhooks have no CA since ", "MutatingWebhookConfiguration called-"))
		Eventually(w.read(ctx, p)).Should(And(trusted, haveCondition(v1alpha2.ReadyCondition, metav1.ConditionFalse,
			v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.1.0 failed",
			"not healthy within 10s: webhooks have no CA")))
	})

	It("let an upgrade pass that is injected at once", func(ctx SpecContext) {
		w.startInjecting(ctx)
		update(ctx, w, p, request("again"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"), trusted))
	})

	It("have an outdated CA until cert-manager injects the new one, which fails no revision", func(ctx SpecContext) {
		secret := after.issued(nil)
		Expect(bedtest.Edit(ctx, w.client, secret, func(s *corev1.Secret) {
			s.Data = map[string][]byte{"ca.crt": second}
		})).To(Succeed())

		outdated := lack(v1alpha2.CALostReason, "webhooks have an outdated CA", "v1.1.0 is not healthy")
		Eventually(w.read(ctx, p)).Should(outdated)

		w.restart()
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(outdated)

		w.startInjecting(ctx)
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"), trusted))
	})

	It("cost one request at most where they get the CA at once", func(ctx SpecContext) {
		t := newTiny("called-at-once", "v1.0.0").withPlaceholder().withWebhook("Validating")
		p := t.resource()

		w.startInjecting(ctx)
		w.offer(ctx, t)
		Expect(w.client.Create(ctx, t.issued(second))).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), trusted))
		Expect(w.requests(func(r bed.Request) bool {
			return r.Resource == "secrets" && r.Name == t.name+"-cert" && r.Verb == "get"
		})).To(Or(BeEmpty(), HaveLen(1)), "it may be healthy before they have it")
	})
})
