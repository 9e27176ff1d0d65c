package webhooks

import (
	"encoding/base64"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// newCA returns a certificate that signs itself.
func newCA(t *testing.T) string {
	t.Helper()

	pem, _, err := cert.GenerateSelfSignedCertKey("webhook", nil, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(pem)
}

var injectedFrom = map[string]string{v1alpha2.InjectCAAnnotation: "capi-system/capi-serving-cert"}

// TestOf: the CAs of an object are those that all its webhooks have.
func TestOf(t *testing.T) {
	first, second := newCA(t), newCA(t)
	written := metav1.NewTime(time.Unix(100, 0))

	configuration := func(bundles ...string) *unstructured.Unstructured {
		webhooks := make([]any, 0, len(bundles))
		for _, bundle := range bundles {
			webhooks = append(webhooks, map[string]any{"clientConfig": map[string]any{
				"caBundle": base64.StdEncoding.EncodeToString([]byte(bundle)),
			}})
		}

		o := &unstructured.Unstructured{Object: map[string]any{
			"kind": "ValidatingWebhookConfiguration", "webhooks": webhooks,
		}}
		o.SetName("capi")
		o.SetAnnotations(injectedFrom)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Time: &written, FieldsV1: metav1.NewFieldsV1(`{"f:clientConfig":{"f:caBundle":{}}}`)},
			{Time: new(metav1.NewTime(time.Unix(200, 0))), FieldsV1: metav1.NewFieldsV1(`{"f:labels":{}}`)},
		})

		return o
	}

	for name, test := range map[string]struct {
		bundles []string
		want    CAs
	}{
		"one webhook":            {[]string{first}, CAsOf([]byte(first))},
		"two CAs":                {[]string{first + second}, CAsOf([]byte(second + first))},
		"two webhooks":           {[]string{first, first}, CAsOf([]byte(first))},
		"one with another CA":    {[]string{first + second, second}, CAsOf([]byte(second))},
		"one without":            {[]string{first, ""}, nil},
		"one with a placeholder": {[]string{first, "\n"}, nil},
		"none":                   {[]string{"", first}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := Of(configuration(test.bundles...))
			g.Expect(found.CAs).To(ConsistOf(test.want))
			g.Expect(found.Certificate).To(Equal(types.NamespacedName{Namespace: "capi-system", Name: "capi-serving-cert"}))
			g.Expect(found.Time).To(BeTemporally("==", written.Time))
			g.Expect(found.Object.String()).To(Equal("ValidatingWebhookConfiguration capi"))
		})
	}

	g := NewWithT(t)
	g.Expect(Of(configuration())).To(BeNil(), "it has no webhooks")

	others := configuration(first)
	others.SetAnnotations(nil)
	g.Expect(Of(others)).To(BeNil(), "cert-manager injects nothing into it")
}

func TestOfDefinition(t *testing.T) {
	g := NewWithT(t)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: injectedFrom}}
	g.Expect(OfDefinition(crd)).To(BeNil(), "it has no webhook")

	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}},
	}
	g.Expect(OfDefinition(crd).CAs).To(BeEmpty())

	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte(newCA(t))
	g.Expect(OfDefinition(crd).CAs).NotTo(BeEmpty())
}

// TestDoubtful: a Secret is read only if webhooks may lack its CA.
func TestDoubtful(t *testing.T) {
	secret := time.Unix(100, 0)
	at := func(seconds int64, cas ...string) Injected { return Injected{CAs: cas, Time: time.Unix(seconds, 0)} }

	for name, test := range map[string]struct {
		all  []Injected
		want bool
	}{
		"injected after the Secret":  {[]Injected{at(101, "a"), at(102, "a")}, false},
		"injected at the same time":  {[]Injected{at(100, "a")}, false},
		"injected before the Secret": {[]Injected{at(101, "a"), at(99, "a")}, true},
		"at an unknown time":         {[]Injected{{CAs: CAs{"a"}}}, false},
		"one without a CA":           {[]Injected{at(101, "a"), at(101)}, true},
		"different CAs":              {[]Injected{at(101, "a"), at(101, "b")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Doubtful(test.all, secret)).To(Equal(test.want))
		})
	}
}

func TestInclude(t *testing.T) {
	g := NewWithT(t)
	g.Expect(CAs{"a", "b"}.Include(CAs{"a"})).To(BeTrue())
	g.Expect(CAs{"a"}.Include(CAs{"a", "b"})).To(BeFalse())
	g.Expect(CAs{"a"}.Include(nil)).To(BeFalse())
}
