package values

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// deployment is the chart's values of one Deployment. What is empty is left out; what is there but
// empty, such as no tolerations at all, is not.
type deployment struct {
	Replicas           *int32                        `json:"replicas,omitempty"`
	NodeSelector       map[string]string             `json:"nodeSelector,omitzero"`
	Tolerations        *[]corev1.Toleration          `json:"tolerations,omitempty"`
	Affinity           *corev1.Affinity              `json:"affinity,omitempty"`
	ServiceAccountName string                        `json:"serviceAccountName,omitempty"`
	ImagePullSecrets   []corev1.LocalObjectReference `json:"imagePullSecrets,omitzero"`
	Containers         map[string]*container         `json:"containers,omitempty"`
}

// container is the chart's values of one container.
type container struct {
	// Image is a whole reference, or the parts of one to replace.
	Image   any      `json:"image,omitempty"`
	Command []string `json:"command,omitempty"`
	// Args are flags without their dashes.
	Args           map[string]string            `json:"args,omitempty"`
	FeatureGates   map[string]bool              `json:"featureGates,omitempty"`
	Env            []corev1.EnvVar              `json:"env,omitempty"`
	Resources      *corev1.ResourceRequirements `json:"resources,omitempty"`
	LivenessProbe  *probe                       `json:"livenessProbe,omitempty"`
	ReadinessProbe *probe                       `json:"readinessProbe,omitempty"`
}

type probe struct {
	HTTPGet httpGet `json:"httpGet"`
}

type httpGet struct {
	Path string `json:"path"`
}

// deployments makes the chart's value "deployments" of spec.manager, spec.deployment and
// spec.additionalDeployments. The warnings tell what has no effect.
func (s *Schema) deployments(spec *v1alpha2.ProviderSpec) (values map[string]any, warnings []string, err error) {
	made := map[string]*deployment{}
	add := func(name, field string, d *v1alpha2.DeploymentSpec, m *v1alpha2.ManagerSpec) error {
		values, ignored, err := s.deployment(name, field, d, m)
		made[name] = values

		warnings = append(warnings, ignored...)

		return err
	}

	manager := ""
	if spec.Manager != nil || spec.Deployment != nil {
		if manager, err = s.managerDeployment(spec.AdditionalDeployments); err != nil {
			return nil, nil, err
		}

		if err := add(manager, "spec.", spec.Deployment, spec.Manager); err != nil {
			return nil, nil, err
		}
	}

	for name, additional := range sorted(spec.AdditionalDeployments) {
		field := fmt.Sprintf("spec.additionalDeployments[%s]", name)
		if _, exists := s.containers[name]; !exists {
			return nil, nil, &CustomizationError{
				field,
				fmt.Sprintf(
					"there is no such Deployment in %s; it has %s",
					s.Label,
					listed(slices.Sorted(maps.Keys(s.containers))),
				),
			}
		}

		if name == manager {
			return nil, nil, &CustomizationError{
				field,
				"this is the Deployment of the provider's manager, which spec.manager and spec.deployment change; use one of the two ways",
			}
		}

		if err := add(name, field+".", additional.Deployment, additional.Manager); err != nil {
			return nil, nil, err
		}
	}

	if values, err = plain(made); err != nil {
		return nil, nil, err
	}

	prune(values)

	return values, warnings, nil
}

// prune removes Deployments and containers of which nothing is changed. Whatever else is empty
// means something.
func prune(deployments map[string]any) {
	empty := func(_ string, v any) bool { m, isMap := v.(map[string]any); return isMap && len(m) == 0 }

	for _, d := range deployments {
		values := d.(map[string]any)
		if containers, some := values["containers"].(map[string]any); some {
			maps.DeleteFunc(containers, empty)

			if len(containers) == 0 {
				delete(values, "containers")
			}
		}
	}

	maps.DeleteFunc(deployments, empty)
}

// deployment makes the values of the named Deployment. field is where in the resource the two specs
// are.
func (s *Schema) deployment(
	name, field string,
	d *v1alpha2.DeploymentSpec,
	m *v1alpha2.ManagerSpec,
) (*deployment, []string, error) {
	values := &deployment{Containers: map[string]*container{}}

	var warnings []string

	if d != nil {
		values.Replicas, values.NodeSelector, values.Tolerations, values.Affinity = d.Replicas, d.NodeSelector, d.Tolerations, d.Affinity

		values.ServiceAccountName, values.ImagePullSecrets = d.ServiceAccountName, d.ImagePullSecrets
		for i := range d.Containers {
			c := &d.Containers[i]
			if !slices.Contains(s.containers[name], c.Name) {
				return nil, nil, &CustomizationError{
					field + "deployment.containers",
					fmt.Sprintf("Deployment %s has no container %q; it has %s", name, c.Name, listed(s.containers[name])),
				}
			}

			if values.container(c.Name).change(c) {
				warnings = append(
					warnings,
					fmt.Sprintf(
						"%sdeployment.containers: --namespace of container %s is ignored: a provider watches all namespaces; %smanager.cacheNamespace restricts it to one",
						field,
						c.Name,
						field,
					),
				)
			}
		}
	}

	if m != nil {
		manager, err := s.managerOf(name, field+"manager")
		if err != nil {
			return nil, nil, err
		}

		for _, ignored := range values.container(manager).manage(m) {
			warnings = append(
				warnings,
				fmt.Sprintf("%smanager.%s is ignored: Cluster API's managers have no flag for it", field, ignored),
			)
		}
	}

	return values, warnings, nil
}

// container gives the values of a container to change them.
func (d *deployment) container(name string) *container {
	if d.Containers[name] == nil {
		d.Containers[name] = &container{Args: map[string]string{}}
	}

	return d.Containers[name]
}

// change takes over what the spec says of the container. True says that an argument that a provider
// must not have was left out.
func (c *container) change(spec *v1alpha2.ContainerSpec) (ignored bool) {
	if spec.ImageURL != nil && *spec.ImageURL != "" {
		c.Image = *spec.ImageURL
	}

	if spec.Image != nil && *spec.Image != (v1alpha2.ImageMeta{}) {
		c.Image = spec.Image
	}

	for flag, value := range sorted(spec.Args) {
		if bare(flag) == "namespace" && spec.Name == managerContainer {
			ignored = true
			continue
		}

		c.Args[bare(flag)] = value
	}

	c.Env = append(c.Env, spec.Env...)
	if spec.Resources != nil {
		c.Resources = spec.Resources
	}

	if len(spec.Command) > 0 {
		c.Command = spec.Command
	}

	return ignored
}

// bare is a flag without its dashes.
func bare(flag string) string { return strings.TrimLeft(flag, "-") }

// sorted goes through a map by its keys, so that of several keys that mean one thing always the
// same wins.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// plain turns values into JSON's types, as Helm wants them.
func plain(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}

	var values map[string]any

	return values, utiljson.Unmarshal(data, &values)
}
