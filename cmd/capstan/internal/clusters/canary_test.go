package clusters

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

const boxCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com, labels: {cluster.x-k8s.io/provider: infrastructure-sample}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes, singular: box, listKind: BoxList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer}}}}}
`

// webhookServer answers admission requests as its mode says.
type webhookServer struct {
	*httptest.Server

	mode  atomic.Value
	calls atomic.Int32
}

func startWebhook(t *testing.T) *webhookServer {
	t.Helper()

	s := &webhookServer{}
	s.mode.Store("allow")

	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)

		if s.mode.Load() == "down" {
			panic(http.ErrAbortHandler)
		}

		review := &admissionv1.AdmissionReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: s.mode.Load() == "allow"}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)

	return s
}

// configuration returns the configuration of the webhook for Boxes.
func (s *webhookServer) configuration() *registrationv1.ValidatingWebhookConfiguration {
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: "boxes", Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-sample"},
		},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "boxes.example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				URL:      &s.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{
					APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"boxes"},
				},
			}},
			SideEffects:             new(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// TestCanary: requests that the webhook does not answer count, and nothing is created.
func TestCanary(t *testing.T) {
	g := NewWithT(t)
	b := bedtest.StartAPIServer(t)
	cluster, err := harness.PrepareForTest(t.Context(), b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	canary := func(arguments ...string) (string, error) {
		out, _, err := clitest.Run(t.Context(), NewCanaryCommand,
			append(arguments, "--kubeconfig", b.Kubeconfig(), "--duration", "1s")...)

		return out, err
	}

	_, err = canary()
	g.Expect(err).To(MatchError(HavePrefix("there are no providers")))

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "sample", Namespace: "default"}}
	g.Expect(cluster.Create(t.Context(), p)).To(Succeed())

	out, err := canary()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(MatchRegexp(`infrastructure-sample +no webhook answers a dry run`))

	webhook := startWebhook(t)

	bedtest.Apply(t.Context(), t, b, boxCRD)
	g.Expect(cluster.Create(t.Context(), webhook.configuration())).To(Succeed())

	// The API server notices the webhook after a moment.
	g.Eventually(func() int32 {
		_, err = canary()
		g.Expect(err).NotTo(HaveOccurred())

		return webhook.calls.Load()
	}).WithTimeout(time.Minute).Should(BeNumerically(">", 0))

	for _, mode := range []string{"allow", "deny"} {
		webhook.mode.Store(mode)

		out, err = canary("infrastructure-sample")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(MatchRegexp(`infrastructure-sample +Box v1 +[1-9]\d* +0 +none`), mode)
	}

	webhook.mode.Store("down")

	out, err = canary("-o", "json")
	exit := &cli.ExitError{}
	g.Expect(errors.As(err, &exit)).To(BeTrue())
	g.Expect(exit.Code).To(Equal(cli.ExitFindings))

	var results []measured

	g.Expect(json.Unmarshal([]byte(out), &results)).To(Succeed())
	g.Expect(results).To(HaveLen(1))
	g.Expect(results[0].Attempts).To(BeNumerically(">", 0))
	g.Expect(results[0].Failed()).To(Equal(results[0].Attempts))
	g.Expect(results[0].Gaps).To(HaveLen(1))
	g.Expect(results[0].Gaps[0].Reason).To(Equal("EOF"))

	boxes := &unstructured.UnstructuredList{}
	boxes.SetAPIVersion("example.com/v1")
	boxes.SetKind("BoxList")
	g.Expect(cluster.List(t.Context(), boxes)).To(Succeed())
	g.Expect(boxes.Items).To(BeEmpty())
}
