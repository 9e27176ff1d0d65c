package bundle

import (
	"crypto/x509"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// HasConversionWebhook reports whether a webhook that runs as a Service converts the objects of a
// CRD.
func HasConversionWebhook(crd map[string]any) bool { return conversionService(crd) != nil }

// conversionService returns the reference of a CRD to the Service of its conversion webhook, or
// nil.
func conversionService(crd map[string]any) map[string]any {
	return NestedMap(crd, "spec", "conversion", "webhook", "clientConfig", "service")
}

// caBundle is the field of a CRD that cert-manager fills in.
var caBundle = []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}

// CABundle returns the CA of a CRD's conversion webhook, in base64.
func CABundle(crd map[string]any) string { return NestedString(crd, caBundle...) }

// RemoveCABundle removes the CA of a CRD's conversion webhook.
func RemoveCABundle(crd map[string]any) { unstructured.RemoveNestedField(crd, caBundle...) }

// HasCertificate reports whether the API server accepts a caBundle. Since Kubernetes 1.31 it does not accept a
// placeholder instead of a certificate.
func HasCertificate(pem []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(pem) }

// MoveCRD sets the namespace of a CRD's conversion webhook, and of the Certificate whose CA cert-manager injects. It
// reports whether the CRD has either.
func MoveCRD(crd *unstructured.Unstructured, namespace string) bool {
	annotations := crd.GetAnnotations()

	_, certificate, injected := strings.Cut(annotations[v1alpha2.InjectCAAnnotation], "/")
	if injected {
		annotations[v1alpha2.InjectCAAnnotation] = namespace + "/" + certificate
		crd.SetAnnotations(annotations)
	}

	service := conversionService(crd.Object)
	if service != nil {
		service["namespace"] = namespace
	}

	return injected || service != nil
}
