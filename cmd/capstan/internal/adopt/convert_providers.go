package adopt

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// section is a value with providers of a type by name. A provider without a namespace has the default one, or one
// with its name and the suffix.
type section struct {
	key       string
	kind      v1alpha2.ProviderType
	suffix    string
	namespace string
}

// sections are those of cluster-api-operator's chart.
var sections = []section{
	{key: "core", kind: v1alpha2.CoreProviderType, namespace: "capi-system"},
	{key: "bootstrap", kind: v1alpha2.BootstrapProviderType, suffix: "-bootstrap-system"},
	{key: "controlPlane", kind: v1alpha2.ControlPlaneProviderType, suffix: "-control-plane-system"},
	{key: "infrastructure", kind: v1alpha2.InfrastructureProviderType, suffix: "-infrastructure-system"},
	{key: "addon", kind: v1alpha2.AddonProviderType, suffix: "-addon-system"},
	{key: "ipam", kind: v1alpha2.IPAMProviderType, suffix: "-ipam-system"},
}

// implied is a provider that the chart adds if its section is empty, and one of others is not.
type implied struct {
	section, name, namespace string
	by                       []string
}

var impliedProviders = []implied{
	{"core", "cluster-api", "capi-system", []string{"bootstrap", "controlPlane", "infrastructure", "addon", "ipam"}},
	{"bootstrap", "kubeadm", "capi-kubeadm-bootstrap-system", []string{"infrastructure"}},
	{"controlPlane", "kubeadm", "capi-kubeadm-control-plane-system", []string{"infrastructure"}},
}

// specFields are the fields of a provider's values that are fields of its resource's spec.
var specFields = []string{"version", "deployment", "fetchConfig", "manifestPatches", "patches"}

// converter converts values.
type converter struct {
	warn func(format string, args ...any)
	// old are the values of cluster-api-operator's chart.
	old map[string]any
	// createNamespaces are the different values of createNamespace.
	createNamespaces map[bool]bool
}

// providers returns the value "providers".
func (c *converter) providers() ([]any, error) {
	all := []any{}

	for _, s := range sections {
		given, err := mapOf(c.old, s.key)
		if err != nil {
			return nil, err
		}

		for _, name := range slices.Sorted(maps.Keys(given)) {
			provider, err := c.provider(s, name, given)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", s.key, name, err)
			}

			all = append(all, provider)
		}

		if len(given) == 0 {
			all = append(all, c.implied(s)...)
		}
	}

	return all, c.checkSources()
}

// checkSources warns of sources of providers that are not infrastructures, which cluster-api-operator's chart ignores.
func (c *converter) checkSources() error {
	sources, err := mapOf(c.old, "fetchConfig")
	if err != nil {
		return err
	}

	infrastructures, err := mapOf(c.old, "infrastructure")

	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if _, exists := infrastructures[name]; !exists {
			c.warn("fetchConfig.%s has no effect in cluster-api-operator's chart, and is left out", name)
		}
	}

	return err
}

// implied returns the provider that is added because its section is empty, if there is one.
func (c *converter) implied(s section) []any {
	for _, i := range impliedProviders {
		isWanted := slices.ContainsFunc(i.by, func(key string) bool { return !isEmpty(c.old[key]) })
		if i.section != s.key || !isWanted {
			continue
		}

		c.createNamespaces[true] = true
		spec := map[string]any{}

		if secret, _ := c.old["configSecret"].(map[string]any); !isEmpty(secret["name"]) {
			spec["configSecret"] = secret
		}

		return []any{resource(s.kind, i.name, i.namespace, spec)}
	}

	return nil
}

// provider converts the values of a provider.
func (c *converter) provider(s section, name string, all map[string]any) (map[string]any, error) {
	given, isMap := all[name].(map[string]any)
	if !isMap && all[name] != nil {
		return nil, errors.New("expected a map")
	}

	namespace, _ := given["namespace"].(string)
	if namespace == "" {
		namespace = s.namespace
	}

	if namespace == "" {
		namespace = name + s.suffix
	}

	create, isSet := given["createNamespace"].(bool)
	c.createNamespaces[create || !isSet] = true

	spec, err := c.spec(s, name, given)

	return resource(s.kind, name, namespace, spec), err
}

// resource returns an item of the value "providers".
func resource(kind v1alpha2.ProviderType, name, namespace string, spec map[string]any) map[string]any {
	r := map[string]any{"kind": string(kind), "name": name, "namespace": namespace}
	if len(spec) > 0 {
		r["spec"] = spec
	}

	return r
}

// spec returns the spec of a provider's resource.
func (c *converter) spec(s section, name string, given map[string]any) (map[string]any, error) {
	spec := map[string]any{}
	path := s.key + "." + name

	for _, field := range slices.Sorted(maps.Keys(given)) {
		value := given[field]

		switch {
		case field == "namespace", field == "createNamespace", field == "configSecret", isEmpty(value):
		case slices.Contains(specFields, field):
			spec[field] = value
		case field == "manager":
			if err := c.setManager(spec, path, given); err != nil {
				return nil, err
			}
		case field == "additionalManifests":
			if err := c.setManifests(spec, path, given); err != nil {
				return nil, err
			}
		default:
			c.warn("%s.%s has no effect in cluster-api-operator's chart, and is left out", path, field)
		}
	}

	return spec, c.setCommon(spec, s, name, given)
}

// setCommon sets the fields that values outside of the provider's own have an effect on.
func (c *converter) setCommon(spec map[string]any, s section, name string, given map[string]any) error {
	// The secret for all providers takes precedence over that of one.
	for _, values := range []map[string]any{c.old, given} {
		secret, err := mapOf(values, "configSecret")
		if err != nil {
			return err
		}

		if !isEmpty(secret["name"]) {
			spec["configSecret"] = secret
			break
		}
	}

	if s.kind != v1alpha2.InfrastructureProviderType {
		return nil
	}

	all, err := mapOf(c.old, "fetchConfig")
	if fetch := all[name]; isEmpty(spec["fetchConfig"]) && !isEmpty(fetch) {
		spec["fetchConfig"] = fetch
	}

	if deployments := c.old["additionalDeployments"]; !isEmpty(deployments) {
		spec["additionalDeployments"] = deployments
	}

	return err
}

// setManager sets those fields of spec.manager that the chart sets.
func (c *converter) setManager(spec map[string]any, path string, given map[string]any) error {
	manager, err := mapOf(given, "manager")
	if err != nil {
		return err
	}

	kept := map[string]any{}

	for _, field := range slices.Sorted(maps.Keys(manager)) {
		switch field {
		case "featureGates", "metrics":
			if !isEmpty(manager[field]) {
				kept[field] = manager[field]
			}
		default:
			c.warn("%s.manager.%s has no effect in cluster-api-operator's chart, and is left out", path, field)
		}
	}

	if len(kept) > 0 {
		spec["manager"] = kept
	}

	return nil
}

// setManifests sets the reference to the ConfigMap with additional manifests, which the chart does not create.
func (c *converter) setManifests(spec map[string]any, path string, given map[string]any) error {
	manifests, err := mapOf(given, "additionalManifests")
	if err != nil {
		return err
	}

	reference := maps.Clone(manifests)
	delete(reference, "manifests")

	spec["additionalManifests"] = reference

	c.warn("%s.additionalManifests: create ConfigMap %v with the key manifests yourself; the chart does not", path,
		manifests["name"])

	return nil
}
