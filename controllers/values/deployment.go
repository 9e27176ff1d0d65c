package values

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// deployment is the chart's value for one Deployment: the fields of the API, under their names there, except that
// the containers are a map.
type deployment struct {
	v1alpha2.DeploymentSpec

	Containers map[string]*container `json:"containers,omitempty"`
}

// container is the chart's value for one container.
type container struct {
	v1alpha2.ContainerSpec

	// Name and ImageURL are never set: the name is the key, and Image is a whole reference, or the parts of one to
	// replace.
	Name     string `json:"name,omitempty"`
	ImageURL string `json:"imageUrl,omitempty"`
	Image    any    `json:"image,omitempty"`

	// These fields are set by spec.manager only.
	FeatureGates   map[string]bool `json:"featureGates,omitempty"`
	LivenessProbe  *probe          `json:"livenessProbe,omitempty"`
	ReadinessProbe *probe          `json:"readinessProbe,omitempty"`
}

type probe struct {
	HTTPGet httpGet `json:"httpGet"`
}

type httpGet struct {
	Path string `json:"path"`
}

// customization is what a spec changes in one Deployment.
type customization struct {
	// name of the Deployment.
	name string
	// field is the prefix of the two specs' fields in the resource, e.g. "spec.".
	field string
	// deployment may be nil.
	deployment *v1alpha2.DeploymentSpec
	// manager may be nil.
	manager *v1alpha2.ManagerSpec
}

// deployments returns the chart's value "deployments" for spec.manager, spec.deployment,
// spec.additionalDeployments and the default of high availability, and warnings about parts of them that have no
// effect.
func (s *Schema) deployments(in Input) (map[string]any, Warnings, error) {
	var warnings Warnings

	customizations, err := s.customizations(in.Spec)
	if err != nil {
		return nil, warnings, err
	}

	deployments := map[string]*deployment{}

	for _, c := range customizations {
		deployments[c.name], err = s.customize(c, &warnings)
		if err != nil {
			return nil, warnings, err
		}
	}

	if in.HighAvailability {
		warnings.Ignored = append(warnings.Ignored, s.setDefaultAvailability(deployments, customizations)...)
	}

	values, err := toJSON(deployments)
	if err != nil {
		return nil, warnings, err
	}

	prune(values)

	return values, warnings, nil
}

// customizations returns what the spec changes: in the manager's Deployment first, and then in the
// additional ones, by name.
func (s *Schema) customizations(spec *v1alpha2.ProviderSpec) ([]customization, error) {
	var all []customization

	manager := ""

	if spec.Manager != nil || spec.Deployment != nil {
		var err error
		if manager, err = s.managerDeployment(spec.AdditionalDeployments); err != nil {
			return nil, err
		}

		all = append(all, customization{
			name:       manager,
			field:      "spec.",
			deployment: spec.Deployment,
			manager:    spec.Manager,
		})
	}

	for name, additional := range sorted(spec.AdditionalDeployments) {
		field := fmt.Sprintf("spec.additionalDeployments[%s]", name)

		if _, exists := s.published[name]; !exists {
			return nil, misfit(field,
				"there is no such Deployment in %s; it has %s", s.Label, list(slices.Sorted(maps.Keys(s.published))))
		}

		if name == manager {
			return nil, misfit(field, "this is the Deployment of the provider's manager, which spec.manager and "+
				"spec.deployment change; use one of the two ways")
		}

		all = append(all, customization{
			name:       name,
			field:      field + ".",
			deployment: additional.Deployment,
			manager:    additional.Manager,
		})
	}

	return all, nil
}

// customize returns the chart's value for a Deployment, and adds warnings.
func (s *Schema) customize(c customization, warnings *Warnings) (*deployment, error) {
	d := &deployment{Containers: map[string]*container{}}

	if c.deployment != nil {
		if err := s.setDeployment(d, c, warnings); err != nil {
			return nil, err
		}
	}

	if c.manager != nil {
		name, err := s.managerContainerOf(c.name, c.field+"manager")
		if err != nil {
			return nil, err
		}

		m := &manager{container: d.container(name), doubts: s.newDoubts(c.name, name)}
		m.set(c.manager)

		for _, ignored := range m.ignored {
			warnings.Ignored = append(warnings.Ignored, c.field+"manager."+ignored)
		}

		for _, f := range m.found {
			f.Field = c.field + "manager." + f.Field
			warnings.Flags = append(warnings.Flags, f)
		}
	}

	if c.deployment != nil && c.deployment.HighAvailability != nil && *c.deployment.HighAvailability {
		warnings.Ignored = append(warnings.Ignored, s.setAvailability(c.name, d, c.field+"deployment.highAvailability")...)
	}

	return d, nil
}

// setDeployment sets what the customization's DeploymentSpec has, and adds warnings.
func (s *Schema) setDeployment(d *deployment, c customization, warnings *Warnings) error {
	d.DeploymentSpec = *c.deployment
	d.HighAvailability = nil // set if it is possible

	for _, spec := range c.deployment.Containers {
		if !slices.Contains(s.published[c.name].Containers, spec.Name) {
			return misfit(c.field+"deployment.containers",
				"Deployment %s has no container %q; it has %s", c.name, spec.Name, list(s.published[c.name].Containers))
		}

		if err := d.container(spec.Name).merge(spec); err != nil {
			return err
		}

		warnings.Flags = append(warnings.Flags, s.doubtedArgs(c, spec)...)
	}

	// A Deployment without such a container has no manager.
	name, _ := s.managerContainerOf(c.name, "")

	manager := d.Containers[name]
	if manager == nil {
		return nil
	}

	if _, set := manager.Args["namespace"]; !set {
		return nil
	}

	delete(manager.Args, "namespace")

	warnings.Ignored = append(warnings.Ignored, fmt.Sprintf(
		"%[1]sdeployment.containers: --namespace of container %[2]s is ignored: a provider watches all namespaces; "+
			"%[1]smanager.cacheNamespace restricts it to one", c.field, name))

	return nil
}

// merge sets the fields that are set in the spec. A spec may list a container twice.
func (c *container) merge(spec v1alpha2.ContainerSpec) error {
	for arg, value := range sorted(spec.Args) {
		c.Args[trimDashes(arg)] = value
	}

	spec.Args = nil

	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}

	if err := json.Unmarshal(data, &c.ContainerSpec); err != nil {
		return err
	}

	if spec.ImageURL != nil && *spec.ImageURL != "" {
		c.Image = *spec.ImageURL
	}

	if spec.Image != nil && *spec.Image != (v1alpha2.ImageMeta{}) {
		c.Image = spec.Image
	}

	return nil
}

// container returns the value of a container, to be modified.
func (d *deployment) container(name string) *container {
	if d.Containers[name] == nil {
		d.Containers[name] = &container{ContainerSpec: v1alpha2.ContainerSpec{Args: map[string]string{}}}
	}

	return d.Containers[name]
}

// prune removes Deployments and containers without any change. Other empty values have a meaning.
func prune(deployments map[string]any) {
	isEmpty := func(_ string, value any) bool {
		m, isMap := value.(map[string]any)
		return isMap && len(m) == 0
	}

	for _, d := range deployments {
		values := d.(map[string]any)

		containers, exists := values["containers"].(map[string]any)
		if !exists {
			continue
		}

		maps.DeleteFunc(containers, isEmpty)

		if len(containers) == 0 {
			delete(values, "containers")
		}
	}

	maps.DeleteFunc(deployments, isEmpty)
}

// sorted iterates over a map by its keys, so that of several keys with the same meaning the same
// one always wins.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// toJSON converts values to the types of JSON, which Helm expects.
func toJSON(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}

	var values map[string]any

	return values, utiljson.Unmarshal(data, &values)
}
