package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// KubeConfigError reports that the cluster of spec.kubeConfig cannot be used.
type KubeConfigError struct{ message string }

func (e *KubeConfigError) Error() string { return e.message }

// kubeConfig is a kubeconfig from a Secret.
type kubeConfig struct {
	// key identifies the Secret and its content: a changed kubeconfig has another key.
	key  string
	rest *rest.Config
}

// readKubeConfig reads the kubeconfig of a resource. It returns nil for a resource without one.
func readKubeConfig(
	ctx context.Context,
	apiReader client.Reader,
	provider v1alpha2.Provider,
) (*kubeConfig, error) {
	spec := provider.GetSpec().KubeConfig
	if spec == nil {
		return nil, nil
	}

	name := types.NamespacedName{Namespace: provider.GetNamespace(), Name: spec.SecretRef.Name}
	secret := &corev1.Secret{}

	err := apiReader.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil, &KubeConfigError{fmt.Sprintf(
			"Secret %s of spec.kubeConfig does not exist; create it%s", name, deletionHint(provider))}
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}

	data, exists := secret.Data[spec.SecretRef.Key]
	if !exists {
		return nil, &KubeConfigError{fmt.Sprintf(
			"Secret %s of spec.kubeConfig has no key %s; add it%s", name, spec.SecretRef.Key, deletionHint(provider))}
	}

	config, err := fluxclient.KubeConfigFromBytes(data)
	if err != nil {
		// The cause is left out, because its text may quote the kubeconfig.
		return nil, &KubeConfigError{fmt.Sprintf(
			"key %s of Secret %s of spec.kubeConfig is not a usable kubeconfig; it must contain a server and its "+
				"credentials inline, without exec plugins or file paths",
			spec.SecretRef.Key, name,
		)}
	}

	sum := sha256.Sum256(data)

	return &kubeConfig{key: name.String() + "/" + hex.EncodeToString(sum[:]), rest: config}, nil
}

// deletionHint completes a message for a resource that is being deleted, with what to do if its
// cluster no longer exists. It is empty for other resources.
func deletionHint(provider v1alpha2.Provider) string {
	if provider.GetDeletionTimestamp().IsZero() {
		return ""
	}

	return fmt.Sprintf(
		", or, if that cluster no longer exists, remove the finalizer %s from this resource", v1alpha2.Finalizer)
}
