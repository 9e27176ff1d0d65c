package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-project/capstan/controllers/plan"
)

// readEnvironment reads the variables that providers get from the operator's environment. A warning names each that
// cannot be read.
func (c *OperatorConfig) readEnvironment(ctx context.Context, m *mounts, operator *corev1.Container) {
	c.Options.Environment = plan.Environment{}

	for _, name := range c.EnvironmentNames {
		value, err := m.variable(ctx, operator, name)
		if err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf(
				"the variable %s of the operator's --variables-from-environment is left out: %s", name, err))

			continue
		}

		c.Options.Environment[name] = string(value)
	}
}

// variable returns a variable of a container's environment.
func (m *mounts) variable(ctx context.Context, c *corev1.Container, name string) ([]byte, error) {
	for _, v := range slices.Backward(c.Env) {
		switch from := v.ValueFrom; {
		case v.Name != name:
			continue
		case from == nil:
			return []byte(v.Value), nil
		case from.SecretKeyRef != nil:
			return m.value(ctx, newSecret(from.SecretKeyRef.Name, nil), from.SecretKeyRef.Key)
		case from.ConfigMapKeyRef != nil:
			return m.value(ctx, newConfigMap(from.ConfigMapKeyRef.Name, nil), from.ConfigMapKeyRef.Key)
		}

		return nil, errors.New("it is neither a value nor from a Secret or ConfigMap")
	}

	for _, from := range slices.Backward(c.EnvFrom) {
		key, matches := strings.CutPrefix(name, from.Prefix)
		if !matches {
			continue
		}

		var source volumeSource

		switch {
		case from.SecretRef != nil:
			source = newSecret(from.SecretRef.Name, nil)
		case from.ConfigMapRef != nil:
			source = newConfigMap(from.ConfigMapRef.Name, nil)
		default:
			continue
		}

		value, err := m.value(ctx, source, key)
		if err == nil || apierrors.ReasonForError(err) != "" {
			return value, err
		}
	}

	return nil, errors.New("the operator's container does not set it")
}
