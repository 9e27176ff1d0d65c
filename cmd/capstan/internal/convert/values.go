package convert

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// same are the values with the same meaning in both charts.
var same = []string{"affinity", "tolerations", "nodeSelector", "podAnnotations", "podLabels", "volumes"}

// renamed are the values with another name or place in the operator's chart.
var renamed = map[string][]string{
	"replicaCount":       {"replicas"},
	"diagnosticsAddress": {"flags", "metrics-bind-address"},
	"healthAddr":         {"flags", "health-probe-bind-address"},
	"watchConfigSecret":  {"flags", "watch-configsecret"},
	"watchConfigMap":     {"flags", "watch-configmap"},
}

// ofManager are the values that hold a list or map for the container "manager".
var ofManager = map[string]string{"env": "env", "resources": "resources", "volumeMounts": "volumeMounts"}

// needless are values without a counterpart that are not missed, about the pod of that operator, and those that are
// converted with the providers.
var needless = []string{
	"image", "enableHelmHook", "contentionProfiling", "profilerAddress", "containerSecurityContext", "securityContext",
	"logLevel", "strategy", "fetchConfig", "configSecret", "additionalDeployments",
}

// convert returns values of the operator's chart. Warnings name those without a counterpart.
func (c *converter) convert(old map[string]any) (map[string]any, error) {
	c.old = old
	c.createNamespaces = map[bool]bool{}

	providers, err := c.providers()
	if err != nil {
		return nil, err
	}

	values := map[string]any{"providers": providers}

	switch {
	case len(c.createNamespaces) > 1:
		c.warn("createNamespace is false for some providers only; the chart creates the namespaces of all or of none, " +
			"so all are created")
	case c.createNamespaces[false]:
		values["createNamespaces"] = false
	}

	for _, key := range slices.Sorted(maps.Keys(old)) {
		if err := c.setting(values, key, old[key]); err != nil {
			return nil, err
		}
	}

	return values, nil
}

// setting converts a value that is about the operator.
func (c *converter) setting(values map[string]any, key string, value any) error {
	isSection := slices.ContainsFunc(sections, func(s section) bool { return s.key == key })
	inManager, hasManager := ofManager[key]

	switch {
	case isSection, value == nil, slices.Contains(needless, key):
	case slices.Contains(same, key):
		values[key] = value
	case renamed[key] != nil:
		return unstructured.SetNestedField(values, value, renamed[key]...)
	case hasManager:
		containers, err := mapOf(c.old, key)
		if err == nil && !isEmpty(containers["manager"]) {
			values[inManager] = containers["manager"]
		}

		return err
	case key == "insecureDiagnostics":
		return unstructured.SetNestedField(values, value != true, "flags", "metrics-secure")
	case key == "leaderElection":
		election, err := mapOf(c.old, key)
		if enabled, isSet := election["enabled"].(bool); isSet {
			return unstructured.SetNestedField(values, enabled, "flags", "enable-leader-election")
		}

		return err
	case key == "imagePullSecrets":
		if list, isList := value.([]any); isList {
			values[key] = list
		}
	default:
		c.warn("%s has no counterpart, and is left out", key)
	}

	return nil
}

// mapOf returns a value that is a map; an empty one if it is not set.
func mapOf(values map[string]any, key string) (map[string]any, error) {
	value, isMap := values[key].(map[string]any)
	if !isMap && values[key] != nil {
		return nil, fmt.Errorf("%s: expected a map", key)
	}

	return value, nil
}

// isEmpty reports whether a template of Helm takes a value as false.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case float64:
		return value == 0
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}

	return false
}
