// Package catalog lists where providers are published: clusterctl's built-in list, extended and
// overridden by a configuration in clusterctl's format.
package catalog

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drone/envsubst/v2"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// builtInList is clusterctl's list of providers in the format of its configuration.
//
//go:embed providers.yaml
var builtInList []byte

// builtIn returns the entries of clusterctl's list, which every reconcile needs.
var builtIn = sync.OnceValues(func() ([]Entry, error) { return parseEntries(builtInList) })

// Entry is a provider in the catalog.
type Entry struct {
	Type v1alpha2.ProviderType `json:"type"`
	// Name of the provider, for example "aws".
	Name string `json:"name"`
	// URL of the components in clusterctl's form, or the reference of an artifact or image in a registry.
	URL string `json:"url"`
	// Configured reports whether the URL is from the configuration rather than from clusterctl's
	// built-in list.
	Configured bool `json:"-"`
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
	if err := yamlv3.Unmarshal(data, &content); err != nil {
		return nil, newParseError(err)
	}

	c := &Catalog{variables: map[string]string{}}

	for key, value := range content {
		if text, ok := scalar(value); ok {
			c.variables[variableName(key)] = text
		}
	}

	var err error
	if c.Images, err = section(content["images"]); err != nil {
		return nil, err
	}

	providers, err := section(content["providers"])
	if err != nil {
		return nil, err
	}

	c.Entries, err = listEntries([]byte(providers))

	return c, err
}

// Public returns the keys providers and images of a configuration in clusterctl's format, without its variables; nil if
// it has neither. It returns an error if the configuration cannot be used, or if the URL of a provider holds
// credentials.
func Public(data []byte) ([]byte, error) {
	published, err := Parse(data)
	if err != nil {
		return nil, err
	}

	for _, e := range published.Entries {
		if u, err := url.Parse(e.URL); err != nil || u.User != nil {
			return nil, fmt.Errorf("providers: the URL of %s %s holds credentials", e.Type, e.Name)
		}
	}

	var content map[string]any
	if err := yamlv3.Unmarshal(data, &content); err != nil {
		return nil, newParseError(err)
	}

	maps.DeleteFunc(content, func(key string, value any) bool {
		return key != "providers" && key != "images" || value == nil
	})

	if len(content) == 0 {
		return nil, nil
	}

	return yaml.Marshal(content)
}

// WithVariablesOf returns the catalog with the variables of another one instead of its own.
func (c *Catalog) WithVariablesOf(other *Catalog) *Catalog {
	with := *c
	with.variables = other.variables

	return &with
}

// errorLine matches the line number in a parser's error. The rest of the error may quote a credential.
var errorLine = regexp.MustCompile(`line \d+`)

// newParseError returns the error of a configuration that is no YAML, without any of its content.
func newParseError(err error) error {
	line := errorLine.FindString(err.Error())
	if line != "" {
		line += ": "
	}

	return errors.New(line + "not YAML with a map of names and values")
}

// scalar returns the text of a variable's value as clusterctl has it, and false if it is none.
func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case nil, []any, map[string]any, map[any]any:
		return "", false
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), true
	default:
		return fmt.Sprint(value), true
	}
}

// listEntries returns clusterctl's built-in list merged with the providers section of a
// configuration.
func listEntries(configured []byte) ([]Entry, error) {
	entries, err := builtIn()
	if err != nil {
		return nil, err
	}

	added, err := parseEntries(configured)
	if err != nil {
		return nil, err
	}

	entries = slices.Clone(entries)

	for _, e := range added {
		if e.URL, err = envsubst.Eval(e.URL, os.Getenv); err != nil {
			return nil, fmt.Errorf("providers: the URL of %s %s is no template: %w", e.Type, e.Name, err)
		}

		if err := e.check(); err != nil {
			return nil, fmt.Errorf("providers: %s %s: %w", e.Type, e.Name, err)
		}

		e.Configured = true
		entries = slices.DeleteFunc(entries, func(other Entry) bool { return other.Type == e.Type && other.Name == e.Name })
		entries = append(entries, e)
	}

	types := v1alpha2.ProviderTypes()

	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(slices.Index(types, a.Type)-slices.Index(types, b.Type), strings.Compare(a.Name, b.Name))
	})

	return entries, nil
}

// parseEntries returns the entries of a list of providers.
func parseEntries(list []byte) ([]Entry, error) {
	var entries []Entry
	if err := yaml.Unmarshal(list, &entries); err != nil {
		return nil, errors.New("providers: not a list of providers, each with name, type and url")
	}

	return entries, nil
}

// check returns an error if clusterctl would refuse the entry.
func (e Entry) check() error {
	types := v1alpha2.ProviderTypes()

	if !slices.Contains(types, e.Type) {
		return fmt.Errorf("invalid provider type; there are %v", types)
	}

	if problems := validation.IsDNS1123Subdomain(e.Name); len(problems) > 0 {
		return fmt.Errorf("invalid provider name: %s", strings.Join(problems, "; "))
	}

	if (e.Name == v1alpha2.CoreProviderName) != (e.Type == v1alpha2.CoreProviderType) {
		return fmt.Errorf("the name of the %s, and of nothing else, is %s", v1alpha2.CoreProviderType,
			v1alpha2.CoreProviderName)
	}

	if _, err := url.Parse(e.URL); err != nil || e.URL == "" {
		return errors.New("the URL is missing or invalid")
	}

	return nil
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

// Variable returns the value of a variable, and whether it is set. As in clusterctl, the environment takes precedence
// over the configuration, even if it is empty there, and names are not case-sensitive.
func (c *Catalog) Variable(name string) (value string, set bool) {
	name = variableName(name)

	if value, set := os.LookupEnv(name); set {
		return value, true
	}

	value, set = c.variables[name]

	return value, set
}
