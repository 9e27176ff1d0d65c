package compat

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// effect is a part of a Deployment in the namespace fields.
type effect struct {
	deployment string
	part       map[string]any
}

// withoutEffect are the fields below manager that no manager has a flag for, or, like the only kind of lock, that every
// manager has anyway. An event reports them.
var withoutEffect = map[string]bool{
	"gracefulShutDown": true, "controller.cacheSyncTimeout": true, "controller.recoverPanic": true,
	"leaderElection.resourceLock": true,
}

// managerEffects are the effects of the fields below manager on its container.
var managerEffects = map[string]string{
	"additionalArgs":                   "args: [--concurrency-of-another=11]",
	"cacheNamespace":                   "args: [--namespace=tenant]",
	"controller.groupKindConcurrency":  "args: [--kindfields-concurrency=12]",
	"featureGates":                     `args: ["--feature-gates=Kept=true,Old=false,Pool=true"]`,
	"health.healthProbeBindAddress":    `args: ["--health-addr=:9441"]`,
	"health.livenessEndpointName":      "livenessProbe: {httpGet: {path: /live}}",
	"health.readinessEndpointName":     "readinessProbe: {httpGet: {path: /ready}}",
	"leaderElection.leaderElect":       "args: [--leader-elect=true]",
	"leaderElection.leaseDuration":     "args: [--leader-elect-lease-duration=30s]",
	"leaderElection.renewDeadline":     "args: [--leader-elect-renew-deadline=20s]",
	"leaderElection.resourceName":      "args: [--leader-election-id=leases/leader]",
	"leaderElection.resourceNamespace": "args: [--leader-election-id=leases/leader]",
	"leaderElection.retryPeriod":       "args: [--leader-elect-retry-period=4s]",
	"maxConcurrentReconciles":          "args: [--max-concurrent-reconciles=5]",
	"metrics.bindAddress":              `args: ["--metrics-bind-addr=:8081"]`,
	"metrics.diagnosticsAddress":       `args: ["--diagnostics-address=:8444"]`,
	"metrics.insecureDiagnostics":      "args: [--insecure-diagnostics=true]",
	"profilerAddress":                  `args: ["--profiler-address=localhost:6061"]`,
	"syncPeriod":                       "args: [--sync-period=600s]",
	"verbosity":                        "args: [--v=4]",
	"webhook.certDir":                  "args: [--webhook-cert-dir=/certificates]",
	"webhook.host":                     "args: [--webhook-host=localhost]",
	"webhook.port":                     "args: [--webhook-port=9444]",
}

// otherEffects are the effects of other fields, by the first part of their paths. The provider shows in environment
// variables which version, source and Secret it was installed from. Some fields need a provider of their own.
var otherEffects = map[string]struct{ deployment, container string }{
	"version":              {"fields-controller-manager", "env: [{name: RELEASE, value: v1.0.0}]"},
	"configSecret.":        {"fields-controller-manager", "env: [{name: COLOR, value: blue}]"},
	"fetchConfig.selector": {"fields-controller-manager", "env: [{name: SOURCE, value: selected}]"},
	"fetchConfig.oci":      {"fieldsoci-controller-manager", "name: manager"},
	"fetchConfig.url":      {"fieldsurl-controller-manager", "name: manager"},
	"additionalManifests.": {"added", "name: added"},
}

// below returns the path below a field of the provider or of an additional Deployment; empty for other paths.
func below(name, path string) string {
	rest, found := strings.CutPrefix(strings.TrimPrefix(path, "additionalDeployments.*."), name+".")
	if !found {
		return ""
	}

	return rest
}

// effectOf returns the effect of the field at a path, given the part of the example that consists of it.
func effectOf(path string, spec any) effect {
	GinkgoHelper()

	e := effect{deployment: "fields-controller-manager"}

	if strings.HasPrefix(path, "additionalDeployments.") {
		e.deployment = "fields-other"
		spec = member(member(spec, "additionalDeployments"), "*")
	}

	switch {
	case below("manager", path) != "":
		e.part = container(managerEffects[below("manager", path)])
	case below("deployment", path) != "":
		e.part = deploymentPart(member(spec, "deployment").(map[string]any))
	case path == "manifestPatches":
		e.deployment, e.part = "fieldsmerged-controller-manager", patchedBy(path)
	case strings.HasPrefix(path, "patches[]"):
		e.part = patchedBy(path[strings.LastIndex(path, ".")+1:])
	default:
		for prefix, other := range otherEffects {
			if strings.HasPrefix(path, prefix) {
				e = effect{other.deployment, container(other.container)}
			}
		}
	}

	Expect(e.part).NotTo(BeEmpty(), "no effect is known for %s", path)

	return e
}

// patchedBy returns the part of a Deployment that the patch for a field sets.
func patchedBy(field string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"patched-by/" + field: "yes"}}}
}

// container returns the part of a Deployment with a part of a container, written in YAML.
func container(text string) map[string]any {
	GinkgoHelper()

	var part map[string]any
	Expect(yaml.Unmarshal([]byte(text), &part)).To(Succeed())
	Expect(part).NotTo(BeEmpty())

	return podSpec(map[string]any{"containers": []any{part}})
}

// podSpec returns the part of a Deployment with a part of its pods' spec.
func podSpec(part map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": part}}}
}

// deploymentPart returns the part of a Deployment that is set by a part of spec.deployment.
func deploymentPart(spec map[string]any) map[string]any {
	if replicas, set := spec["replicas"]; set {
		return map[string]any{"spec": map[string]any{"replicas": replicas}}
	}

	containers, set := spec["containers"].([]any)
	if !set {
		return podSpec(spec)
	}

	part := maps.Clone(containers[0].(map[string]any))
	if image, set := part["imageUrl"]; set {
		part["image"] = image
		delete(part, "imageUrl")
	}

	if args, set := part["args"].(map[string]any); set {
		var flags []any
		for name, value := range args {
			flags = append(flags, fmt.Sprintf("%s=%v", name, value))
		}

		part["args"] = flags
	}

	return podSpec(map[string]any{"containers": []any{part}})
}

// contains reports whether a value has all of a part: for objects, its fields; for lists, its items, in any order.
func contains(value, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)

		for key := range part {
			ok = ok && contains(object[key], part[key])
		}

		return ok
	case []any:
		items, ok := value.([]any)

		for _, wanted := range part {
			ok = ok && slices.ContainsFunc(items, func(item any) bool { return contains(item, wanted) })
		}

		return ok
	case float64:
		number, ok := value.(int64)
		return ok && float64(number) == part
	default:
		return reflect.DeepEqual(value, part)
	}
}

// deployment returns a Deployment in the namespace fields, once it exists.
func (s *site) deployment(ctx context.Context, name string) map[string]any {
	GinkgoHelper()

	d := &unstructured.Unstructured{}
	d.SetAPIVersion("apps/v1")
	d.SetKind("Deployment")
	Eventually(func() error { return s.Get(ctx, client.ObjectKey{Namespace: "fields", Name: name}, d) }).Should(Succeed())

	return d.Object
}

// events returns a function for Eventually that returns the notes of the events about a provider, in a namespace of
// its name.
func (s *site) events(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(s.List(ctx, list, client.InNamespace(name))).To(Succeed())

		var notes []string

		for _, event := range list.Items {
			if event.Regarding.Name == name {
				notes = append(notes, event.Note)
			}
		}

		return notes
	}
}
