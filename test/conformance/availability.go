package conformance

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

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
	if reason := chartgen.SinglePod(deployment); reason != "" {
		return reason
	}

	var (
		elects, ready bool
		containers    = bundle.NestedMaps(deployment, "template", "spec", "containers")
	)

	for _, container := range containers {
		command, _, _ := unstructured.NestedStringSlice(container, "command")
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		elects = elects || chartgen.ElectsLeader(slices.Concat(command, args))
		ready = ready || container["readinessProbe"] != nil || slices.ContainsFunc(bundle.NestedMaps(container, "ports"),
			func(port map[string]any) bool { return port["name"] == probedPort })
	}

	switch {
	case !elects:
		return chartgen.NoLeaderElection
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
	pod := texts(bundle.NestedMap(deployment, "template", "metadata", "labels"))

	return slices.ContainsFunc(components.Documents, func(doc bundle.Document) bool {
		selector := texts(bundle.NestedMap(doc.Object.Object, "spec", "selector"))

		return doc.Object.GetKind() == "Service" && len(selector) > 0 && selector.AsSelector().Matches(pod)
	})
}

// texts returns labels or a selector.
func texts(content map[string]any) labels.Set {
	set := labels.Set{}
	for key, value := range content {
		set[key] = fmt.Sprint(value)
	}

	return set
}
