// Package catalog knows where providers are published: clusterctl's own list, and over it what a
// person's configuration in clusterctl's format says.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drone/envsubst/v2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Entry is one provider.
type Entry struct {
	Type v1alpha2.ProviderType
	Name string
	// URL of the components, as clusterctl writes it.
	URL string
	// Configured says that the URL is from the configuration rather than from clusterctl.
	Configured bool
}

// Label is clusterctl's label of the provider.
func (e Entry) Label() string { return e.Type.Label(e.Name) }

// Catalog is the list of providers.
type Catalog struct {
	// Entries in clusterctl's order.
	Entries []Entry
	// Overrides is the folder of the overrides layer, <folder>/<label>/<version>/<file>; empty
	// means none.
	Overrides string
	// Images are the image overrides, YAML in clusterctl's format; empty means none.
	Images string
	// variables of the configuration, by name in upper case with underscores.
	variables map[string]string
}

// Parse makes the catalog of a configuration in clusterctl's format: its keys providers, images and
// overridesFolder, and variables beside them. An empty configuration gives clusterctl's own list.
func Parse(data []byte) (*Catalog, error) {
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		// the parser's own words may quote a credential
		return nil, errors.New("not YAML with a map of names and values")
	}

	c := &Catalog{variables: map[string]string{}}

	for key, value := range content {
		if text, ok := value.(string); ok {
			c.variables[variableName(key)] = text
		}
	}

	var err error
	if c.Overrides, err = envsubst.Eval(c.variables["OVERRIDESFOLDER"], os.Getenv); err != nil {
		return nil, fmt.Errorf("overridesFolder: %w", err)
	}

	if c.Images, err = section(content["images"]); err != nil {
		return nil, err
	}

	providers, err := section(content[config.ProvidersConfigKey])
	if err != nil {
		return nil, err
	}

	c.Entries, err = entries(providers)

	return c, err
}

// entries lists the providers, the configured ones among and over clusterctl's.
func entries(providers string) ([]Entry, error) {
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

	all := make([]Entry, 0, len(list))
	for _, p := range list {
		e := Entry{Type: v1alpha2.ProviderType(p.Type()), Name: p.Name(), URL: p.URL()}
		for _, own := range configured {
			e.Configured = e.Configured || own.Name == e.Name && own.Type == string(clusterctlv1.ProviderType(e.Type))
		}

		all = append(all, e)
	}

	return all, nil
}

// section is a part of the configuration as YAML; in ConfigMaps it may be YAML in a string.
func section(value any) (string, error) {
	if text, ok := value.(string); ok || value == nil {
		return text, nil
	}

	data, err := yaml.Marshal(value)

	return string(data), err
}

// variableName is a variable's name as the environment has it.
func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Find gives the entry of a provider.
func (c *Catalog) Find(t v1alpha2.ProviderType, name string) (Entry, bool) {
	for _, e := range c.Entries {
		if e.Type == t && e.Name == name {
			return e, true
		}
	}

	return Entry{}, false
}

// Variable is a variable of the environment, else of the configuration, as in clusterctl; for
// example GITHUB_TOKEN.
func (c *Catalog) Variable(name string) string {
	if value, set := os.LookupEnv(name); set {
		return value
	}

	return c.variables[name]
}

// Load reads a configuration file.
func Load(file string) (*Catalog, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}

	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w; write it in the format of clusterctl's configuration", file, err)
	}

	return c, nil
}

// LoadUser reads clusterctl's own configuration of the user, as far as there is one, with
// clusterctl's own place for overrides.
func LoadUser() (*Catalog, error) {
	load := func() (*Catalog, error) { return Parse(nil) }
	if file := userFile(); file != "" {
		load = func() (*Catalog, error) { return Load(file) }
	}

	c, err := load()
	if err != nil || c.Overrides != "" {
		return c, err
	}

	for _, folder := range UserFolders() {
		if info, err := os.Stat(filepath.Join(folder, "overrides")); err == nil && info.IsDir() {
			c.Overrides = filepath.Join(folder, "overrides")
			break
		}
	}

	return c, nil
}

func userFile() string {
	for _, folder := range UserFolders() {
		for _, extension := range []string{"yaml", "yml", "json"} {
			file := filepath.Join(folder, "clusterctl."+extension)
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}

	return ""
}

// UserFolders are those in which clusterctl looks for its configuration.
func UserFolders() []string {
	var folders []string
	if folder, err := os.UserConfigDir(); err == nil {
		folders = append(folders, filepath.Join(folder, "cluster-api"))
	}

	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".cluster-api"))
	}

	return folders
}
