// Package catalog lists where providers are published: clusterctl's built-in list, extended and
// overridden by a configuration in clusterctl's format.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Entry is a provider in the catalog.
type Entry struct {
	Type v1alpha2.ProviderType
	// Name of the provider, for example "aws".
	Name string
	// URL of the components in clusterctl's form, or the reference of an artifact or image in a registry.
	URL string
	// Configured reports whether the URL is from the configuration rather than from clusterctl's
	// built-in list.
	Configured bool
}

// Label returns clusterctl's label of the provider, for example "infrastructure-aws".
func (e Entry) Label() string { return e.Type.Label(e.Name) }

// Catalog is a list of providers together with the rest of clusterctl's configuration.
type Catalog struct {
	// Entries in clusterctl's order.
	Entries []Entry
	// Images are the image overrides as YAML in clusterctl's format; empty means none.
	Images string
	// variables of the configuration, with names as in the environment.
	variables map[string]string
}

// Parse returns the catalog of a configuration in clusterctl's format: the keys providers and images, and
// variables as further keys. An empty configuration gives clusterctl's built-in list.
func Parse(data []byte) (*Catalog, error) {
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		// the parser's error may quote a credential
		return nil, errors.New("not YAML with a map of names and values")
	}

	c := &Catalog{variables: map[string]string{}}

	for key, value := range content {
		if text, ok := value.(string); ok {
			c.variables[variableName(key)] = text
		}
	}

	var err error
	if c.Images, err = section(content["images"]); err != nil {
		return nil, err
	}

	providers, err := section(content[config.ProvidersConfigKey])
	if err != nil {
		return nil, err
	}

	c.Entries, err = listEntries(providers)

	return c, err
}

// listEntries returns clusterctl's built-in list merged with the providers section of a
// configuration.
func listEntries(providers string) ([]Entry, error) {
	var configured []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	if err := yaml.Unmarshal([]byte(providers), &configured); err != nil {
		return nil, fmt.Errorf("%s: not a list of providers, each with name, type and url", config.ProvidersConfigKey)
	}

	reader := config.NewMemoryReader()
	reader.Set(config.ProvidersConfigKey, providers)

	client, err := config.New(context.Background(), "", config.InjectReader(reader))
	if err != nil {
		return nil, err
	}

	list, err := client.Providers().List()
	if err != nil {
		return nil, err
	}

	entries := make([]Entry, 0, len(list))

	for _, p := range list {
		e := Entry{Type: v1alpha2.ProviderType(p.Type()), Name: p.Name(), URL: p.URL()}

		for _, own := range configured {
			if own.Name == e.Name && own.Type == string(clusterctlv1.ProviderType(e.Type)) {
				e.Configured = true
			}
		}

		entries = append(entries, e)
	}

	return entries, nil
}

// section returns a section of the configuration as YAML. In ConfigMaps, a section may be a string
// that contains YAML.
func section(value any) (string, error) {
	if text, ok := value.(string); ok || value == nil {
		return text, nil
	}

	data, err := yaml.Marshal(value)

	return string(data), err
}

// variableName returns the name that a variable has in the environment: "github-token" is
// GITHUB_TOKEN.
func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Find returns the entry of a provider and reports whether there is one.
func (c *Catalog) Find(t v1alpha2.ProviderType, name string) (Entry, bool) {
	for _, e := range c.Entries {
		if e.Type == t && e.Name == name {
			return e, true
		}
	}

	return Entry{}, false
}

// Variable returns a variable such as GITHUB_TOKEN. As in clusterctl, the environment takes
// precedence over the configuration.
func (c *Catalog) Variable(name string) string {
	if value, set := os.LookupEnv(name); set {
		return value
	}

	return c.variables[name]
}
