package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/problem"
)

// managerContainer is the provider contract's name of the container with the controller manager.
const managerContainer = "manager"

// Schema describes which values a provider's chart has. It is never modified.
type Schema struct {
	// Label is the provider's clusterctl label and the chart's name, e.g. "infrastructure-aws".
	Label string
	// Required are the names of the variables without a default, sorted.
	Required []string
	// Variables are the names of all variables, sorted.
	Variables []string

	// published are the Deployments as published, by name.
	published map[string]chartgen.Deployment
}

// ReadSchema reads the schema of a chart.
func ReadSchema(c *chart.Chart) (*Schema, error) {
	s := &Schema{Label: c.Metadata.Name, published: map[string]chartgen.Deployment{}}

	var err error
	if s.Required, s.Variables, err = chartgen.RequiredVariables(c); err != nil {
		return nil, err
	}

	all, err := chartgen.Deployments(c)
	for _, d := range all {
		s.published[d.Name] = d
	}

	return s, err
}

// misfit returns the problem of a field, e.g. spec.deployment.containers, that does not fit the chart, and what would.
// Only another spec or another version can solve it.
func misfit(field, format string, args ...any) error {
	return problem.Fail(v1alpha2.ComponentsCustomizationErrorReason, "%s: %s", field, fmt.Sprintf(format, args...))
}

// managerDeployment returns the name of the Deployment of the provider's controller manager. A
// provider's only Deployment is the manager's, regardless of its containers. Of several, it is the
// one with a container "manager"; of several with that container, the one with the provider's label;
// of several with that label, the one that is not in spec.additionalDeployments.
func (s *Schema) managerDeployment(additional map[string]v1alpha2.AdditionalDeployment) (string, error) {
	all := slices.Sorted(maps.Keys(s.published))
	if len(all) == 1 {
		return all[0], nil
	}

	candidates := filter(all, func(name string) bool {
		return slices.Contains(s.published[name].Containers, managerContainer)
	})

	if len(candidates) > 1 {
		labeled := filter(candidates, func(name string) bool { return s.published[name].Labeled })
		if len(labeled) > 0 {
			candidates = labeled
		}
	}

	if len(candidates) > 1 {
		candidates = filter(candidates, func(name string) bool {
			_, listed := additional[name]
			return !listed
		})
	}

	if len(candidates) == 1 {
		return candidates[0], nil
	}

	return "", misfit("spec.manager and spec.deployment", "%s", s.ambiguity(all, candidates))
}

// ambiguity describes why none of all Deployments is the manager's: there is not exactly one
// candidate.
func (s *Schema) ambiguity(all, candidates []string) string {
	switch {
	case len(all) == 0:
		return s.Label + " has no Deployment; remove them"
	case len(candidates) == 0:
		return fmt.Sprintf(
			"no Deployment with a container %q is left for them; use spec.additionalDeployments for all of %s",
			managerContainer, strings.Join(all, ", "))
	default:
		return fmt.Sprintf(
			"several Deployments have a container %q: %s; list the others in spec.additionalDeployments, "+
				"as {} to leave them unchanged",
			managerContainer, strings.Join(candidates, ", "))
	}
}

// managerContainerOf returns the name of the container with the controller manager in a Deployment:
// "manager", or the only container. field is that of the manager's flags, for the error.
func (s *Schema) managerContainerOf(deployment, field string) (string, error) {
	containers := s.published[deployment].Containers
	if slices.Contains(containers, managerContainer) {
		return managerContainer, nil
	}

	if len(containers) == 1 {
		return containers[0], nil
	}

	return "", misfit(field,
		"Deployment %s has no container %q to set flags of; it has %s; set args of a container in %s instead",
		deployment, managerContainer, list(containers), strings.TrimSuffix(field, "manager")+"deployment")
}

// list joins names for a message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}

	return strings.Join(names, ", ")
}

// filter returns the names for which keep returns true.
func filter(names []string, keep func(string) bool) []string {
	var kept []string

	for _, name := range names {
		if keep(name) {
			kept = append(kept, name)
		}
	}

	return kept
}
