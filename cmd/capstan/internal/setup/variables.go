package setup

import (
	"context"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// variable is a variable of a provider's components.
type variable struct {
	name     string
	required bool
	// value is only used if from is not empty: it may be a credential, and it may be empty itself.
	value string
	// from says where the value is from.
	from string
}

func (v variable) isMissing() bool { return v.required && v.from == "" }

// variableSources are the places where the values of variables are looked up, in order.
type variableSources struct {
	file       map[string]string
	configured *catalog.Catalog
}

// newVariableSources reads the file with variables, which may be empty, and clusterctl's configuration; empty for
// the user's own.
func newVariableSources(file, config string) (*variableSources, error) {
	configured, err := catalog.LoadUser(config)
	if err != nil {
		return nil, err
	}

	sources := &variableSources{configured: configured}
	if file == "" {
		return sources, nil
	}

	data, err := cli.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--variables: %w", err)
	}

	// The parser's error could quote a credential.
	if yaml.Unmarshal(data, &sources.file) != nil {
		return nil, fmt.Errorf("--variables: %s cannot be read; write each variable as NAME: value on a line of its own, "+
			"with quotes around values that are no text", file)
	}

	return sources, nil
}

// set looks up the values of variables.
func (s *variableSources) set(variables []variable) {
	for i := range variables {
		v := &variables[i]

		if value, given := s.file[v.name]; given {
			v.value, v.from = value, "--variables"
			continue
		}

		value, set := s.configured.Variable(v.name)
		if !set {
			continue
		}

		v.value, v.from = value, "configuration file"
		if _, exported := os.LookupEnv(v.name); exported {
			v.from = "environment"
		}
	}
}

// keepChanged leaves out the variables whose values in the cluster are the given ones, or that are not given.
func (p *provider) keepChanged(ctx context.Context, cluster *cli.Cluster) error {
	spec := p.resource.GetSpec()
	secret := &corev1.Secret{}

	key, hasSecret := spec.VariablesSecret(p.resource.GetNamespace())
	if hasSecret {
		if err := cluster.Client.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Secret %s: %w", key, err)
		}

		if key != p.secretKey() {
			p.foreign = key.String()
		}
	}

	p.variables = slices.DeleteFunc(p.variables, func(v variable) bool {
		current, exists := spec.Variables[v.name]
		if data, inSecret := secret.Data[v.name]; inSecret {
			current, exists = string(data), true
		}

		return v.from == "" || exists && current == v.value
	})

	return nil
}
