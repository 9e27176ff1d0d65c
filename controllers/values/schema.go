package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// managerContainer is what the provider contract calls the container with the controller manager.
const managerContainer = "manager"

// Schema is what a provider's chart lets one set. It does not change.
type Schema struct {
	// Label is clusterctl's label of the provider, e.g. "infrastructure-aws": the chart's name.
	Label string
	// Required and Variables are the names of the variables without a default and of all, sorted.
	Required, Variables []string

	// containers holds the names of each Deployment's containers, init containers among them,
	// sorted.
	containers map[string][]string
	// labelled are the Deployments that were published with the provider's label.
	labelled []string
}

// ReadSchema reads a chart's values.schema.json.
func ReadSchema(c *chart.Chart) (*Schema, error) {
	s := &Schema{Label: c.Metadata.Name, containers: map[string][]string{}}

	var err error
	if s.Required, s.Variables, err = chartgen.RequiredVariables(c); err != nil {
		return nil, err
	}

	schema := c.File(chart.SchemaFile)
	if schema == nil { // a plain chart
		return s, nil
	}

	var root struct {
		Properties struct {
			Deployments struct {
				Properties map[string]struct {
					Properties struct {
						Containers struct {
							Properties map[string]json.RawMessage `json:"properties"`
						} `json:"containers"`
					} `json:"properties"`
				} `json:"properties"`
			} `json:"deployments"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("chart %s: %s: %w", s.Label, chart.SchemaFile, err)
	}

	for name, deployment := range root.Properties.Deployments.Properties {
		s.containers[name] = slices.Sorted(maps.Keys(deployment.Properties.Containers.Properties))
		if bytes.Contains(c.File(chart.TemplatesDir+"deployment-"+name+".yaml"), []byte(v1alpha2.ClusterctlProviderLabel)) {
			s.labelled = append(s.labelled, name)
		}
	}

	return s, nil
}

// CustomizationError says that spec.manager, spec.deployment or spec.additionalDeployments do not
// fit the chart. Nothing helps but another spec or version.
type CustomizationError struct {
	// Field of the resource, e.g. "spec.deployment.containers".
	Field string
	// Reason says what does not fit and what would.
	Reason string
}

func (e *CustomizationError) Error() string { return e.Field + ": " + e.Reason }

// managerDeployment finds the Deployment of the provider's controller manager: the one with a
// container "manager". Of several it is the one published with the provider's label, and then the
// one that is not in additionalDeployments. A provider's only Deployment is the manager's, whatever
// its containers are called.
func (s *Schema) managerDeployment(additional map[string]v1alpha2.AdditionalDeployment) (string, error) {
	all := slices.Sorted(maps.Keys(s.containers))

	candidates := without(all, func(name string) bool { return !slices.Contains(s.containers[name], managerContainer) })
	if len(all) == 1 {
		candidates = all
	}

	if labelled := without(
		candidates,
		func(name string) bool { return !slices.Contains(s.labelled, name) },
	); len(candidates) > 1 &&
		len(labelled) > 0 {
		candidates = labelled
	}

	if len(candidates) > 1 {
		candidates = without(candidates, func(name string) bool { _, listed := additional[name]; return listed })
	}

	switch {
	case len(candidates) == 1:
		return candidates[0], nil
	case len(all) == 0:
		return "", &CustomizationError{
			"spec.manager and spec.deployment",
			fmt.Sprintf("%s has no Deployment; remove them", s.Label),
		}
	case len(candidates) == 0:
		return "", &CustomizationError{
			"spec.manager and spec.deployment",
			fmt.Sprintf(
				"no Deployment with a container %q is left for them; use spec.additionalDeployments for all of %s",
				managerContainer,
				strings.Join(all, ", "),
			),
		}
	default:
		return "", &CustomizationError{
			"spec.manager and spec.deployment",
			fmt.Sprintf(
				"several Deployments have a container %q: %s; name the others in spec.additionalDeployments, as {} to leave them as they are",
				managerContainer,
				strings.Join(candidates, ", "),
			),
		}
	}
}

// managerOf finds the container with the controller manager in a Deployment: "manager", or the only
// one there is.
func (s *Schema) managerOf(deployment, field string) (string, error) {
	containers := s.containers[deployment]
	switch {
	case slices.Contains(containers, managerContainer):
		return managerContainer, nil
	case len(containers) == 1:
		return containers[0], nil
	}

	return "", &CustomizationError{
		field,
		fmt.Sprintf("Deployment %s has no container %q to set flags of; it has %s; use args of a container in %s",
			deployment, managerContainer, listed(containers), strings.TrimSuffix(field, "manager")+"deployment"),
	}
}

// listed names things for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}

	return strings.Join(names, ", ")
}

func without(names []string, drop func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), drop)
}
