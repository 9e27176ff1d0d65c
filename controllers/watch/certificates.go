package watch

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/webhooks"
)

// Certificates enqueues the providers whose webhooks may no longer have the CA of a Secret, because cert-manager has
// issued the Certificate again. One that is not healthy yet is woken by what it waits for.
func (k Kind) Certificates() handler.EventHandler {
	concerns := func(p v1alpha2.Provider, _ client.Object) bool {
		trusted := v1alpha2.FindCondition(p.GetConditions(), v1alpha2.WebhooksTrustedCondition)
		return trusted.Type != "" || v1alpha2.IsReady(p)
	}
	find := k.enqueue(keysField, certificateKey, concerns)

	return onChange(func(ctx context.Context, _, now, secret client.Object) []reconcile.Request {
		if now == nil {
			return nil
		}

		return find(ctx, secret)
	})
}

// certificateKey returns the key of the resources whose release has the Certificate of a Secret.
func certificateKey(secret client.Object) []string {
	name := secret.GetAnnotations()[v1alpha2.CertificateNameAnnotation]
	if name == "" {
		return nil
	}

	return []string{objectKey(webhooks.CertificateKind.Kind, secret.GetNamespace(), name)}
}

// certificateKeys returns the keys of a resource for the Certificates of its release.
func certificateKeys(p v1alpha2.Provider) []string {
	var keys []string

	for _, o := range object.KeysOfInventory(p.GetStatus().Objects) {
		if o.GroupKind() == webhooks.CertificateKind {
			keys = append(keys, objectKey(o.Kind, o.Namespace, o.Name))
		}
	}

	return keys
}
