// Package secrets reads the Secrets that provider resources name. Secrets are always read from the
// API server, and their contents are never logged.
package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Reference is a reference from a provider resource to a Secret.
type Reference struct {
	types.NamespacedName
	// Content describes what the Secret holds, e.g. "the provider's variables".
	Content string
	// Field is the field of the resource that names the Secret, e.g. "spec.configSecret".
	Field string
}

// Variables returns the reference to the Secret with the provider's variables, and whether the
// resource has one.
func Variables(provider v1alpha2.Provider) (Reference, bool) {
	name, found := provider.GetSpec().VariablesSecret(provider.GetNamespace())

	return Reference{NamespacedName: name, Content: "the provider's variables", Field: "spec.configSecret"}, found
}

// NotFoundError reports that a Secret does not exist.
type NotFoundError struct{ Reference }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf(
		"Secret %s with %s does not exist; create it, or correct %s", e.NamespacedName, e.Content, e.Field)
}

// Read returns the data of the Secret. The error is a *NotFoundError if the Secret does not exist.
func Read(ctx context.Context, apiReader client.Reader, reference Reference) (map[string][]byte, error) {
	secret := &corev1.Secret{}

	err := apiReader.Get(ctx, reference.NamespacedName, secret)
	if apierrors.IsNotFound(err) {
		return nil, &NotFoundError{reference}
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", reference.NamespacedName, err)
	}

	return secret.Data, nil
}
