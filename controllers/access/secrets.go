package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// SecretReference is a reference from a provider resource to a Secret.
type SecretReference struct {
	types.NamespacedName
	// Content describes what the Secret holds, e.g. "the provider's variables".
	Content string
	// Field is the field of the resource that names the Secret, e.g. "spec.configSecret".
	Field string
}

// VariablesSecret returns the reference to the Secret with the provider's variables, and whether the
// resource has one.
func VariablesSecret(provider v1alpha2.Provider) (SecretReference, bool) {
	spec := provider.GetSpec()
	name, found := spec.VariablesSecret(provider.GetNamespace())

	field := "spec.configSecret"
	if spec.ConfigSecret == nil {
		field = "spec.secretName"
	}

	return SecretReference{NamespacedName: name, Content: "the provider's variables", Field: field}, found
}

// ReadSecret returns the data of the Secret, which is always read from the API server, and never logged. The error is
// a *problem.Error if the Secret does not exist.
func ReadSecret(ctx context.Context, apiReader client.Reader, reference SecretReference) (map[string][]byte, error) {
	secret := &corev1.Secret{}

	err := apiReader.Get(ctx, reference.NamespacedName, secret)
	if apierrors.IsNotFound(err) {
		return nil, problem.Refuse(v1alpha2.SecretNotFoundReason,
			"Secret %s with %s does not exist; create it, or correct %s",
			reference.NamespacedName, reference.Content, reference.Field)
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", reference.NamespacedName, err)
	}

	return secret.Data, nil
}
