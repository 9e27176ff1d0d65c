package e2e

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// converter is a conversion webhook that changes nothing but the version.
type converter struct {
	address string
	ca      []byte
	pair    tls.Certificate
	server  *http.Server
}

func startConverter() *converter {
	GinkgoHelper()

	ca, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	Expect(err).NotTo(HaveOccurred())

	c := &converter{address: "127.0.0.1:0", ca: ca, pair: must(tls.X509KeyPair(ca, key))}
	c.start()
	DeferCleanup(func() { c.stop() })

	return c
}

// start starts the webhook, at the same address each time.
func (c *converter) start() {
	GinkgoHelper()

	listener, err := tls.Listen("tcp", c.address,
		&tls.Config{Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS12})
	Expect(err).NotTo(HaveOccurred())

	relabel := func(_ context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
		return relabelled(o, schema.FromAPIVersionAndKind(to, o.GetKind())), nil
	}

	c.address = listener.Addr().(*net.TCPAddr).String()
	server := &http.Server{Handler: &webhooks{convert: relabel}, ReadHeaderTimeout: time.Minute}
	c.server = server

	go func() { _ = server.Serve(listener) }()
}

func (c *converter) stop() { _ = c.server.Close() }

// withOldObject returns a provider with an object of its own kind, in a version that is not stored.
func (t tiny) withOldObject(c *converter) tiny {
	t = t.serving("v2", "v1")
	t.components = strings.Replace(t.components, "  scope: Namespaced\n", fmt.Sprintf(`  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://%s/convert", caBundle: %s}}
`, c.address, base64.StdEncoding.EncodeToString(c.ca)), 1)
	t.components += fmt.Sprintf(`---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: %s
metadata: {name: own, namespace: %s-system}
`, t.kind(), t.name)

	return t
}

var _ = Describe("Objects that the API server can no longer convert", Ordered, func() {
	It("are reported as unknown, until it can", func(ctx SpecContext) {
		w := sharedWorld(ctx)
		webhook := startConverter()
		t := newTiny("convertible", "v1.0.0").withOldObject(webhook)
		p := t.resource()

		w.offer(ctx, t)
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		By("changing objects while the webhook is gone")
		webhook.stop()
		Expect(w.client.Create(ctx, t.object("v2", "other"))).To(Succeed())

		unknown := t.kind() + " convertible/own cannot be read, so its health and drift are not known: "

		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.UnreadableObjectsReason, "v1.0.0 has a problem: "+unknown, "; repair the webhook's server"),
			haveCondition(v1alpha2.DriftedCondition, metav1.ConditionUnknown, v1alpha2.UnreadableObjectsReason, unknown)))

		webhook.start()
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), Not(haveConditionType(v1alpha2.DriftedCondition))))
	})
})
