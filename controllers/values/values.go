// Package values makes a chart's values of what a resource says. Credentials pass through here on
// their way to Helm and are never logged.
package values

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// SecretNotFoundError says that the Secret with a provider's variables does not exist.
type SecretNotFoundError struct {
	Secret types.NamespacedName
}

func (e *SecretNotFoundError) Error() string {
	return fmt.Sprintf(
		"Secret %s with the provider's variables does not exist; create it, or correct spec.configSecret",
		e.Secret,
	)
}

// Variables are the provider's variables: spec.variables, and over them the keys of the Secret that
// the spec names. A Secret that does not exist is a *SecretNotFoundError.
func Variables(ctx context.Context, reader client.Reader, provider v1alpha2.Provider) (map[string]string, error) {
	variables := maps.Clone(provider.GetSpec().Variables)
	if variables == nil {
		variables = map[string]string{}
	}

	name, named := provider.GetSpec().VariablesSecret(provider.GetNamespace())
	if !named {
		return variables, nil
	}

	secret := &corev1.Secret{}

	err := reader.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil, &SecretNotFoundError{Secret: name}
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}

	for key, value := range secret.Data {
		variables[key] = string(value)
	}

	return variables, nil
}

// Missing lists, of the required variables, those that are not set. One that is set to nothing
// counts as set, as in clusterctl: some providers' credentials are optional that way.
func Missing(required []string, variables map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(name string) bool { _, set := variables[name]; return set })
}

// Values makes the chart's values of what the resource says and of the provider's variables,
// credentials among them. The warnings tell a person what of the spec has no effect. The error is a
// *CustomizationError or an *ImagesError when the resource or its Secret is at fault. Nothing is
// taken from the cluster: the same input gives the same values.
func (s *Schema) Values(
	spec *v1alpha2.ProviderSpec,
	variables map[string]string,
) (values map[string]any, warnings []string, err error) {
	values = map[string]any{"variables": s.variables(variables)}

	deployments, warnings, err := s.deployments(spec)
	if err != nil {
		return nil, nil, err
	}

	if len(deployments) > 0 {
		values["deployments"] = deployments
	}

	overrides, err := Images(s.Label, variables[ImagesKey])
	if err != nil {
		return nil, nil, &ImagesError{err}
	}

	if len(overrides) > 0 {
		values[ImagesKey] = overrides
	}

	return values, warnings, nil
}

// variables are those that the chart knows. Others stay out: a Secret may hold other keys, such as
// a token for fetching, that have no business in a Helm release.
func (s *Schema) variables(set map[string]string) map[string]any {
	chosen := map[string]any{}

	for _, name := range s.Variables {
		if value, ok := set[name]; ok {
			chosen[name] = value
		}
	}

	return chosen
}
