package values

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// container is the chart's value for one container.
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

// set sets what the spec has. It reports whether --namespace was ignored, which managers get only
// by spec.manager.
func (c *container) set(spec *v1alpha2.ContainerSpec, isManager bool) (ignoredNamespace bool) {
	if spec.ImageURL != nil && *spec.ImageURL != "" {
		c.Image = *spec.ImageURL
	}

	if spec.Image != nil && *spec.Image != (v1alpha2.ImageMeta{}) {
		c.Image = spec.Image
	}

	for arg, value := range sorted(spec.Args) {
		flag := trimDashes(arg)
		if flag == "namespace" && isManager {
			ignoredNamespace = true
			continue
		}

		c.Args[flag] = value
	}

	c.Env = append(c.Env, spec.Env...)

	if spec.Resources != nil {
		c.Resources = spec.Resources
	}

	if len(spec.Command) > 0 {
		c.Command = spec.Command
	}

	return ignoredNamespace
}
