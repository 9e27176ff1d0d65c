package plan

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestVariablesFromEnvironment: the operator's environment is the lowest layer of variables, only for
// names that are listed and only for resources that have the operator's permissions.
func TestVariablesFromEnvironment(t *testing.T) {
	const name = "AWS_B64ENCODED_CREDENTIALS"

	for title, c := range map[string]struct {
		listed []string
		change func(*v1alpha2.InfrastructureProvider)
		// want is the variable's value; empty if the variable is missing.
		want string
	}{
		"a listed name": {
			listed: []string{"OTHER", name},
			want:   "from-environment",
		},
		"no listed name": {},
		"another name": {
			listed: []string{"OTHER"},
		},
		"the resource sets it": {
			listed: []string{name},
			change: func(p *v1alpha2.InfrastructureProvider) { p.Spec.Variables = map[string]string{name: "own"} },
			want:   "own",
		},
		"the Secret of the resource sets it": {
			listed: []string{name},
			change: func(p *v1alpha2.InfrastructureProvider) { p.Spec.SecretName = "variables" },
			want:   "from-secret",
		},
		"the resource runs as a ServiceAccount": {
			listed: []string{name},
			change: func(p *v1alpha2.InfrastructureProvider) { p.Spec.ServiceAccountName = "tenant" },
		},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(name, "from-environment")

			planner := newPlanner(readOnlyClient(variables(map[string][]byte{name: []byte("from-secret")})))
			planner.Environment = ReadEnvironment(c.listed)

			provider := aws("v1.0.0")
			provider.Spec.SecretName = ""

			if c.change != nil {
				c.change(provider)
			}

			plan, err := planner.Plan(t.Context(), Request{Provider: provider})
			g.Expect(err).NotTo(HaveOccurred())

			if c.want == "" {
				g.Expect(plan.MissingVariables).To(ConsistOf(name))
				return
			}

			g.Expect(plan.MissingVariables).To(BeEmpty())
			g.Expect(plan.Release.Values["variables"]).To(HaveKeyWithValue(name, c.want))
		})
	}
}

// TestChangedEnvironmentIsNoChangeOfTheSecret: the inputs of a release leave the environment out, so a
// restarted operator with another environment does not blame the Secret.
func TestChangedEnvironmentIsNoChangeOfTheSecret(t *testing.T) {
	g := NewWithT(t)

	inputs := func(environment Environment) any {
		planner := newPlanner(readOnlyClient(variables(map[string][]byte{"OTHER": []byte("x")})))
		planner.Environment = environment

		plan, err := planner.Plan(t.Context(), Request{Provider: aws("v1.0.0")})
		g.Expect(err).NotTo(HaveOccurred())

		return plan.Release.Inputs
	}

	g.Expect(inputs(Environment{"AWS_B64ENCODED_CREDENTIALS": "one"})).
		To(Equal(inputs(Environment{"AWS_B64ENCODED_CREDENTIALS": "two"})))
}
