// Package webhooks finds the CA with which the API server calls webhooks, and checks whether it is the one of their
// Certificate that cert-manager injects.
package webhooks

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/object"
)

// maxCAs is how many certificates of a bundle are kept. cert-manager injects one or two.
const maxCAs = 32

// Kinds are those of webhook configurations.
var Kinds = map[schema.GroupKind]bool{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
}

// CertificateKind is cert-manager's.
var CertificateKind = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}

// CAs are the digests of certificates that a bundle has, sorted.
type CAs []string

// CAsOf returns what a bundle has.
func CAsOf(bundle []byte) CAs {
	var found CAs

	for len(found) < maxCAs {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}

		sum := sha256.Sum256(block.Bytes)
		found = append(found, hex.EncodeToString(sum[:8]))
	}

	slices.Sort(found)

	return slices.Compact(found)
}

// Include reports whether all of others are among them, which are some.
func (c CAs) Include(others CAs) bool {
	missing := func(ca string) bool { return !slices.Contains(c, ca) }
	return len(others) > 0 && !slices.ContainsFunc(others, missing)
}

// Injected is an object with webhooks whose CA cert-manager injects.
type Injected struct {
	Object object.Key
	// Certificate is the Certificate whose CA is injected.
	Certificate types.NamespacedName
	// CAs are the certificates that all webhooks of the object trust; none if one webhook has none.
	CAs CAs
	// Time is when a CA was written last; zero if that is not known.
	Time time.Time
}

// Of returns what a webhook configuration has; nil if cert-manager injects nothing into it.
func Of(configuration *unstructured.Unstructured) *Injected {
	certificate, ok := certificateOf(configuration)
	webhooks := bundle.NestedMaps(configuration.Object, "webhooks")

	if !ok || len(webhooks) == 0 {
		return nil
	}

	found := &Injected{
		Object: object.KeyOf(configuration), Certificate: certificate, Time: written(configuration.GetManagedFields()),
	}

	for i, webhook := range webhooks {
		encoded := bundle.NestedString(webhook, "clientConfig", "caBundle")
		decoded, _ := base64.StdEncoding.DecodeString(encoded) // the API server has decoded it

		cas := CAsOf(decoded)
		if i > 0 {
			cas = slices.DeleteFunc(cas, func(ca string) bool { return !slices.Contains(found.CAs, ca) })
		}

		found.CAs = cas
	}

	return found
}

// OfDefinition returns what the conversion webhook of a CRD has; nil if cert-manager injects nothing into it.
func OfDefinition(crd *apiextensionsv1.CustomResourceDefinition) *Injected {
	certificate, ok := certificateOf(crd)
	conversion := crd.Spec.Conversion

	if !ok || conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}

	return &Injected{
		Object: object.Key{
			GroupVersionKind: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), Name: crd.Name,
		},
		Certificate: certificate,
		CAs:         CAsOf(conversion.Webhook.ClientConfig.CABundle),
	}
}

// certificateOf returns the Certificate that an object names; false if it names none.
func certificateOf(o metav1.Object) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(o.GetAnnotations()[v1alpha2.InjectCAAnnotation], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && len(namespace)+len(name) <= maxName
}

// maxName is how long a namespace and a name may be together.
const maxName = 63 + 253

// written returns when a CA was written last, according to managed fields.
func written(fields []metav1.ManagedFieldsEntry) (last time.Time) {
	for _, entry := range fields {
		writes := entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:caBundle"`))
		if writes && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}

	return last
}

// Doubtful reports whether objects may not have the CA of a Secret that was written last at a time: one has none, they
// have different ones, or theirs was written before the Secret. Otherwise the Secret need not be read.
func Doubtful(all []Injected, secretWritten time.Time) bool {
	for _, i := range all {
		if len(i.CAs) == 0 || !slices.Equal(i.CAs, all[0].CAs) {
			return true
		}

		if !i.Time.IsZero() && i.Time.Before(secretWritten) {
			return true
		}
	}

	return false
}
