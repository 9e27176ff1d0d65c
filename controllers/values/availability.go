package values

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/managers"
)

// setDefaultAvailability sets high availability for the Deployments of which the spec leaves it open, and returns
// warnings.
func (s *Schema) setDefaultAvailability(deployments map[string]*deployment, chosen []customization) []string {
	var warnings []string

	for _, name := range slices.Sorted(maps.Keys(s.published)) {
		if slices.ContainsFunc(chosen, func(c customization) bool {
			return c.name == name && c.deployment != nil && c.deployment.HighAvailability != nil
		}) {
			continue
		}

		if deployments[name] == nil {
			deployments[name] = &deployment{}
		}

		warnings = append(warnings, s.setAvailability(name, deployments[name], "--"+managers.HighAvailabilityFlag)...)
	}

	return warnings
}

// setAvailability sets high availability for a Deployment with its other values, unless it cannot run two pods. It
// returns warnings: why it cannot, or what takes precedence. field is what asks for it.
func (s *Schema) setAvailability(name string, d *deployment, field string) []string {
	published := s.published[name].Spec

	if reason := single(published, d); reason != "" {
		return []string{fmt.Sprintf("%s is ignored for Deployment %s: %s", field, name, reason)}
	}

	d.HighAvailability = ptr.To(true)

	var warnings []string

	warn := func(what string) {
		warnings = append(warnings, fmt.Sprintf("Deployment %s: %s, which takes precedence over %s", name, what, field))
	}

	if d.Replicas != nil && *d.Replicas == 1 {
		warn("the resource sets one replica")
	}

	if d.TopologySpreadConstraints != nil {
		warn("the resource sets topologySpreadConstraints")
	}

	if strategy := bundle.NestedMap(published, "strategy"); len(strategy) > 0 {
		warn(fmt.Sprintf("the components set the strategy %v", strategy["type"]))
	}

	return warnings
}

// single returns why a Deployment cannot run two pods at the same time; empty if it can.
func single(published map[string]any, d *deployment) string {
	return chartgen.SingleManager(published, func(container string) (command, args []string) {
		changed := d.Containers[container]
		if changed == nil {
			return nil, nil
		}

		for name, value := range sorted(changed.Args) {
			args = append(args, "--"+name+"="+value)
		}

		return changed.Command, args
	})
}
