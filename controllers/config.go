package controllers

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/watch"
)

// Config has the flags of the operator that decide what it does with resources. The operator publishes them, and the
// command line sets them to the same values, so that it computes the same. They hold no secrets: these are in files
// and variables that flags name.
type Config struct {
	// Options are those settings that flags hold as they are; Load adds the others.
	Options Options

	// ChartRepository, its VerifyKeys, RegistryConfig and RegistryCA are what Options.Registry is created from.
	ChartRepository, VerifyKeys, RegistryConfig, RegistryCA string
	// Managers are what Options.Managers are loaded from.
	Managers managers.Flags
	// WatchNamespaces and WatchLabelSelector are what Options.Scope consists of.
	WatchNamespaces    []string
	WatchLabelSelector string
	// EnvironmentNames are the names of Options.Environment.
	EnvironmentNames []string
}

// BindFlags adds the flags to a set.
//
//nolint:funlen // it is a list
func (c *Config) BindFlags(set *pflag.FlagSet) {
	o := &c.Options

	set.StringSliceVar(
		&c.WatchNamespaces,
		"watch-namespaces",
		nil,
		"Comma-separated namespaces whose provider resources the operator manages. Default: all.",
	)
	set.StringVar(
		&c.WatchLabelSelector,
		"watch-label-selector",
		"",
		"Label selector for the provider resources that the operator manages, such as team=a. Default: all.",
	)
	set.IntVar(
		&o.Concurrency,
		"concurrency",
		10,
		"Number of resources of one kind that are reconciled concurrently.",
	)
	set.BoolVar(
		&o.Suspended,
		"suspend",
		false,
		"Change nothing, as if spec.suspend of all resources were true.",
	)
	set.BoolVar(
		&o.WatchConfigMaps,
		"watch-configmap",
		false,
		"Upgrade a provider as soon as the ConfigMap with its components changes.",
	)
	set.BoolVar(
		&o.WatchSecrets,
		"watch-configsecret",
		false,
		"Upgrade a provider as soon as the Secret with its variables changes.",
	)
	set.BoolVar(
		&o.ClusterctlInventory,
		"clusterctl-inventory",
		true,
		"Keep clusterctl's inventory of the providers in the operator's cluster.",
	)
	set.StringVar(
		&o.ConfigFile,
		configFlag,
		fetch.DefaultConfigFile,
		"Configuration file in clusterctl's format, with the keys providers and images. The default one is optional.",
	)
	set.StringVar(
		&o.DefaultServiceAccount,
		"default-service-account",
		"",
		"ServiceAccount in the resource's namespace to impersonate if spec.serviceAccountName is unset. "+
			"Default: the operator uses its own permissions.",
	)
	set.StringVar(
		&c.ChartRepository,
		"chart-repository",
		"",
		"Repository with charts, such as oci://registry.example.com/capi/charts, from which all providers "+
			"without fetchConfig come. Other sources need --allowed-source-hosts.",
	)
	set.StringVar(
		&c.VerifyKeys,
		fetch.VerifyKeysFlag,
		"",
		"File with a public key of cosign that the charts in the chart repository must be signed with.",
	)
	set.StringVar(
		&o.ImageRegistry,
		"image-registry",
		"",
		"Registry, as host[:port][/path], that replaces that of every image.",
	)
	set.StringSliceVar(
		&c.EnvironmentNames,
		"variables-from-environment",
		nil,
		"Comma-separated environment variables of the operator that providers get as variables, unless their "+
			"resource sets them or runs as a ServiceAccount.",
	)
	set.StringVar(
		&c.RegistryConfig,
		"registry-config",
		"",
		"File with credentials for registries, in docker's format.",
	)
	set.StringVar(
		&c.RegistryCA,
		"registry-ca",
		"",
		"File with additional CA certificates for registries.",
	)
	c.Managers.BindFlags(set)
	o.ACL.BindFlags(set)
	o.SourcePolicy.BindFlags(set)
	set.DurationVar(
		&o.RemoteInterval,
		"remote-interval",
		5*time.Minute,
		"How often to check remote clusters while nothing changes, at least 10s.",
	)
}

// configFlag is the flag of Options.ConfigFile.
const configFlag = "config"

// FileFlag is a flag whose value is the path of a file.
type FileFlag struct {
	Name string
	Path *string
}

// Files returns the flags whose values are paths of files without secrets. All others are in that of --registry-config.
func (c *Config) Files() []FileFlag {
	return []FileFlag{
		{Name: "registry-ca", Path: &c.RegistryCA},
		{Name: managers.CAFlag, Path: &c.Managers.CA},
		{Name: fetch.VerifyKeysFlag, Path: &c.VerifyKeys},
		{Name: configFlag, Path: &c.Options.ConfigFile},
	}
}

// Credentials returns those in the file of --registry-config; nil without one.
func (c *Config) Credentials() (transport.Credentials, error) {
	if c.RegistryConfig == "" {
		return nil, nil
	}

	credentials, err := transport.DockerConfigFile(c.RegistryConfig)
	if err != nil {
		return nil, fmt.Errorf("--registry-config: %w", err)
	}

	return credentials, nil
}

// Load checks the flags, reads the files that they name, and returns the operator's settings, with credentials for
// registries. Those that are no flags are left empty.
func (c *Config) Load(read fetch.ReadFile, credentials transport.Credentials) (Options, error) {
	options := c.Options

	var err error
	if options.Scope, err = watch.NewScope(c.WatchNamespaces, c.WatchLabelSelector); err != nil {
		return options, err
	}

	var ca []byte
	if c.RegistryCA != "" {
		if ca, err = read(c.RegistryCA); err != nil {
			return options, fmt.Errorf("--registry-ca: %w", err)
		}
	}

	if options.Registry, err = fetch.NewRegistry(c.ChartRepository, credentials, ca); err != nil {
		return options, err
	}

	options.Registry.VerifyKeys, options.Registry.Read = c.VerifyKeys, read
	options.Catalog = fetch.CatalogFile(c.Options.ConfigFile)
	options.Managers, err = c.Managers.Load(read)

	return options, err
}

// Values returns the values of all flags by their names.
func (c *Config) Values() map[string]string {
	// Binding sets defaults, so the flags are those of a copy that takes the values afterwards.
	bound := &Config{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	bound.BindFlags(set)
	*bound = *c

	values := map[string]string{}

	set.VisitAll(func(f *pflag.Flag) { values[f.Name] = textOf(f.Value) })

	return values
}

// Set sets flags to values by their names, and the others to their defaults. It returns the sorted names that are no
// flags.
func (c *Config) Set(values map[string]string) (unknown []string, err error) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.BindFlags(set)

	for name, value := range values {
		if set.Lookup(name) == nil {
			unknown = append(unknown, name)
		} else if err := set.Set(name, value); err != nil {
			return nil, fmt.Errorf("the operator's configuration cannot be read: %w", err)
		}
	}

	slices.Sort(unknown)

	return unknown, nil
}

// textOf returns the text that sets a flag to the value that it has.
func textOf(value pflag.Value) string {
	list, isList := value.(pflag.SliceValue)
	if !isList {
		return value.String()
	}

	var text bytes.Buffer

	w := csv.NewWriter(&text)
	_ = w.Write(list.GetSlice()) // a buffer does not fail
	w.Flush()

	return strings.TrimSpace(text.String())
}
