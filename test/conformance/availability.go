package conformance

import (
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// probedPort is the name of the port that gets a readiness probe if the components have none.
const probedPort = "webhook-server"

// checkAvailability reports the Deployments whose webhooks do not answer all the time, even if users set
// spec.deployment.highAvailability.
func (c *check) checkAvailability(components *bundle.Components) {
	for _, doc := range components.Documents {
		if doc.Object.GetKind() != "Deployment" {
			continue
		}

		if reason := unavailable(bundle.NestedMap(doc.Object.Object, "spec"), components); reason != "" {
			c.report(availabilityRule, "has the Deployment %s, which cannot be highly available: %s",
				doc.Object.GetName(), reason)
		}
	}
}

// unavailable returns why requests to the pods of a Deployment fail during an upgrade; empty if none does.
func unavailable(deployment map[string]any, components *bundle.Components) string {
	asPublished := func(string) (command, args []string) { return nil, nil }
	if reason := chartgen.SingleManager(deployment, asPublished); reason != "" {
		return reason
	}

	ready := false

	for _, container := range bundle.NestedMaps(deployment, "template", "spec", "containers") {
		ready = ready || container["readinessProbe"] != nil || slices.ContainsFunc(bundle.NestedMaps(container, "ports"),
			func(port map[string]any) bool { return port["name"] == probedPort })
	}

	switch {
	case bundle.NestedString(deployment, "strategy", "type") == "Recreate":
		return "its strategy Recreate stops all pods before new ones start"
	case !ready && served(deployment, components):
		return fmt.Sprintf("it has neither a readiness probe nor a port %s, so a Service sends requests to pods that do "+
			"not serve yet", probedPort)
	}

	return ""
}

// served reports whether a Service of the components selects the pods of a Deployment.
func served(deployment map[string]any, components *bundle.Components) bool {
	pod := bundle.NestedLabels(deployment, "template", "metadata", "labels")

	return slices.ContainsFunc(components.Documents, func(doc bundle.Document) bool {
		selector := bundle.NestedLabels(doc.Object.Object, "spec", "selector")

		return doc.Object.GetKind() == "Service" && len(selector) > 0 && selector.AsSelector().Matches(pod)
	})
}
