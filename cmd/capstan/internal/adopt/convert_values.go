package adopt

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// same are the values with the same meaning in both charts.
var same = []string{
	"affinity", "tolerations", "nodeSelector", "podAnnotations", "podLabels", "topologySpreadConstraints", "volumes",
}

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

// ofElection are the values of leaderElection with the flags of the operator.
var ofElection = map[string]string{
	"enabled":       "enable-leader-election",
	"leaseDuration": "leader-election-lease-duration",
	"renewDeadline": "leader-election-renew-deadline",
	"retryPeriod":   "leader-election-retry-period",
}

// ofProviders are the values that are converted with the providers.
var ofProviders = []string{"fetchConfig", "configSecret", "additionalDeployments"}

// defaults are those of cluster-api-operator's chart for values that are not converted as they are. What has its
// default is left out: it says nothing about what the user wants.
var defaults = map[string]any{
	"affinity": map[string]any{"nodeAffinity": map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{
			map[string]any{"matchExpressions": []any{
				map[string]any{
					"key": "kubernetes.io/arch", "operator": "In", "values": []any{"amd64", "arm64", "ppc64le"},
				},
				map[string]any{"key": "kubernetes.io/os", "operator": "In", "values": []any{"linux"}},
			}},
		}},
	}},
	"contentionProfiling": false,
	"enableHelmHook":      true,
	"logLevel":            2.0,
	"profilerAddress":     ":6060",
	"volumeMounts": map[string]any{"manager": []any{map[string]any{
		"mountPath": "/tmp/k8s-webhook-server/serving-certs", "name": "cert", "readOnly": true,
	}}},
	"volumes": []any{map[string]any{"name": "cert", "secret": map[string]any{
		"defaultMode": 420.0, "secretName": "capi-operator-webhook-service-cert",
	}}},
}

// repositories are those of cluster-api-operator's image that its charts have as defaults.
var repositories = []any{
	nil, "registry.k8s.io/capi-operator/cluster-api-operator", "gcr.io/k8s-staging-capi-operator/cluster-api-operator",
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
	case isSection, value == nil, slices.Contains(ofProviders, key), reflect.DeepEqual(value, defaults[key]):
	case slices.Contains(same, key):
		values[key] = value
	case renamed[key] != nil:
		return unstructured.SetNestedField(values, value, renamed[key]...)
	case hasManager:
		return c.containers(values, key, inManager)
	case key == "insecureDiagnostics":
		return unstructured.SetNestedField(values, value != true, "flags", "metrics-secure")
	case key == "leaderElection":
		return c.election(values)
	case key == "image":
		return c.image()
	case key == "imagePullSecrets" && isList(value):
		values[key] = value
	case isEmpty(value) && defaults[key] == nil:
	default:
		c.leaveOut(key)
	}

	return nil
}

// leaveOut warns that a value has no counterpart.
func (c *converter) leaveOut(key string) { c.warn("%s has no counterpart, and is left out", key) }

// containers converts a value that has a list or map for each container.
func (c *converter) containers(values map[string]any, key, inManager string) error {
	containers, err := mapOf(c.old, key)

	for _, name := range slices.Sorted(maps.Keys(containers)) {
		switch {
		case isEmpty(containers[name]):
		case name == "manager":
			values[inManager] = containers[name]
		default:
			c.leaveOut(key + "." + name)
		}
	}

	return err
}

// election converts the settings of the leader election.
func (c *converter) election(values map[string]any) error {
	election, err := mapOf(c.old, "leaderElection")
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(election)) {
		flag, known := ofElection[name]

		switch {
		case election[name] == nil:
		case !known:
			c.leaveOut("leaderElection." + name)
		default:
			if err := unstructured.SetNestedField(values, election[name], "flags", flag); err != nil {
				return err
			}
		}
	}

	return nil
}

// image warns if the image comes from another place than usual, such as a mirror.
func (c *converter) image() error {
	images, err := mapOf(c.old, "image")
	if err != nil {
		return err
	}

	manager, err := mapOf(images, "manager")
	if err != nil {
		return err
	}

	if manager["registry"] != nil || !slices.Contains(repositories, manager["repository"]) {
		c.warn("image.manager is that of cluster-api-operator, and is left out; set image.repository to that of Capstan's " +
			"image, if it does not come from its usual place")
	}

	return nil
}

func isList(value any) bool {
	_, is := value.([]any)

	return is
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
