// Package values computes the values of a provider's chart from the provider's resource. The values
// may hold credentials, so they are never logged.
package values

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
)

// Variables returns the provider's variables: spec.variables, overridden by the keys of the Secret
// that the spec names. The error is a *problem.Error if that Secret does not exist.
func Variables(ctx context.Context, apiReader client.Reader, provider v1alpha2.Provider) (map[string]string, error) {
	variables := map[string]string{}
	maps.Copy(variables, provider.GetSpec().Variables)

	reference, named := access.VariablesSecret(provider)
	if !named {
		return variables, nil
	}

	data, err := access.ReadSecret(ctx, apiReader, reference)
	if err != nil {
		return nil, err
	}

	for key, value := range data {
		variables[key] = string(value)
	}

	return variables, nil
}

// Missing returns the required variables that are not set. As in clusterctl, an empty value counts
// as set: some providers have optional credentials that way.
func Missing(required []string, variables map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		_, set := variables[name]
		return set
	})
}

// Input is the input from which the values of a chart are computed.
type Input struct {
	Spec *v1alpha2.ProviderSpec
	// Variables are the provider's variables, credentials among them. As in clusterctl, the variable
	// "images" holds the provider's image overrides.
	Variables map[string]string
	// ImageOverrides are those of the operator's configuration, YAML in clusterctl's format. The
	// provider's own override them key by key.
	ImageOverrides string
	// HighAvailability is the default of spec.deployment.highAvailability, for all Deployments.
	HighAvailability bool
}

// Warnings are what a user should know about a spec although values follow from it.
type Warnings struct {
	// Ignored describes the parts of the spec that have no effect.
	Ignored []string
	// Flags are those that managers may not have.
	Flags []Flag
}

// All returns all warnings as sentences.
func (w Warnings) All() []string {
	all := slices.Clone(w.Ignored)
	for _, f := range w.Flags {
		all = append(all, f.String())
	}

	return all
}

// Values returns the values of the chart, and warnings about parts of the spec.
// The error is a *problem.Error if the input is at fault. The same input
// always gives the same values: nothing is read from the cluster.
func (s *Schema) Values(in Input) (values map[string]any, warnings Warnings, err error) {
	variables := map[string]any{}
	for name, value := range s.Used(in.Variables) {
		variables[name] = value
	}

	values = map[string]any{"variables": variables}

	deployments, warnings, err := s.deployments(in)
	if err != nil {
		return nil, Warnings{}, err
	}

	if len(deployments) > 0 {
		values["deployments"] = deployments
	}

	images, err := s.images(in)
	if err != nil {
		return nil, Warnings{}, err
	}

	if len(images) > 0 {
		values["images"] = images
	}

	return values, warnings, nil
}

// Used returns those variables that the chart has. The others do not belong into a Helm release: a
// Secret may hold other keys, such as a token for fetching.
func (s *Schema) Used(set map[string]string) map[string]string {
	used := map[string]string{}

	for _, name := range s.Variables {
		if value, exists := set[name]; exists {
			used[name] = value
		}
	}

	return used
}
