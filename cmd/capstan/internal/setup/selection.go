package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// selection holds the values of the flags that name providers, by type.
type selection map[v1alpha2.ProviderType]*[]string

// defaults are the providers that clusterctl installs into an empty cluster unless others are named.
var defaults = map[v1alpha2.ProviderType]string{
	v1alpha2.CoreProviderType:         "cluster-api",
	v1alpha2.BootstrapProviderType:    "kubeadm",
	v1alpha2.ControlPlaneProviderType: "kubeadm",
}

// shorthands are those of clusterctl's flags.
var shorthands = map[v1alpha2.ProviderType]string{
	v1alpha2.BootstrapProviderType:      "b",
	v1alpha2.ControlPlaneProviderType:   "c",
	v1alpha2.InfrastructureProviderType: "i",
}

// none is the value of a flag that selects no provider of a type, as for clusterctl.
const none = "-"

// wanted is a provider to install.
type wanted struct {
	kind v1alpha2.ProviderType
	name string
	// version is empty for the newest one.
	version string
}

func (w wanted) label() string { return w.kind.Label(w.name) }

// checkVersion returns an error if a resource in the cluster has another version than the wanted one.
func (w wanted) checkVersion(resource v1alpha2.Provider) error {
	version := resource.GetSpec().Version
	if w.version == "" || w.version == version {
		return nil
	}

	matches, err := ranges.Parse(w.version)
	if err != nil {
		return err
	}

	if exact, err := semver.NewVersion(version); err == nil && ranges.IsExact(version) && matches(exact) {
		return nil
	}

	command := fmt.Sprintf("capstan upgrade apply %s:%s", w.label(), w.version)
	if !ranges.IsExact(w.version) {
		command = fmt.Sprintf("capstan upgrade apply --version '%s' --only %s", w.version, w.label())
	} else if cli.IsOlder(w.version, resource) {
		command += " --allow-downgrade"
	}

	return fmt.Errorf("%s exists with spec.version %s, not %s; to change it, run `%s`",
		v1alpha2.FullName(resource), cmp.Or(version, "not set"), w.version, command)
}

// addFlags adds a flag for each type of providers.
func (s selection) addFlags(flags *pflag.FlagSet) {
	for _, t := range v1alpha2.ProviderTypes() {
		s[t] = &[]string{}

		usage := fmt.Sprintf("%ss to install, as name[:version].", t)
		if name, hasDefault := defaults[t]; hasDefault {
			usage += fmt.Sprintf(" Default: %s unless core exists; %s for none.", name, none)
		}

		flags.StringSliceVarP(s[t], cli.TypeName(t), shorthands[t], nil, usage)
	}
}

// wanted returns the providers to install in the order of installation, core first. A first installation includes
// the defaults.
func (s selection) wanted(first bool) ([]wanted, error) {
	var all []wanted

	for _, t := range v1alpha2.ProviderTypes() {
		given := slices.Clone(*s[t])
		if len(given) == 0 && first && defaults[t] != "" {
			given = []string{defaults[t]}
		}

		for _, argument := range given {
			if argument == none {
				continue
			}

			w, err := parseWanted(t, argument)
			if err != nil {
				return nil, err
			}

			if slices.ContainsFunc(all, func(o wanted) bool { return o.label() == w.label() }) {
				return nil, fmt.Errorf("--%s: %s is named twice; a cluster can have each provider only once",
					cli.TypeName(t), w.name)
			}

			all = append(all, w)
		}
	}

	return all, nil
}

// parseWanted parses name[:version]. Versions may be ranges, as in spec.version.
func parseWanted(t v1alpha2.ProviderType, argument string) (wanted, error) {
	name, version, hasVersion := strings.Cut(argument, ":")

	if name == "" || hasVersion && version == "" {
		return wanted{}, fmt.Errorf("--%s=%s: expected name[:version], such as %s", cli.TypeName(t), argument, example(t))
	}

	if hasVersion {
		if _, err := ranges.Parse(version); err != nil {
			return wanted{}, fmt.Errorf("--%s=%s: %w", cli.TypeName(t), argument, err)
		}
	}

	return wanted{kind: t, name: name, version: version}, nil
}

// example returns an example of a value of a flag.
func example(t v1alpha2.ProviderType) string {
	if name, hasDefault := defaults[t]; hasDefault {
		return name + ":v1.13.5"
	}

	return "name:v1.0.0"
}
