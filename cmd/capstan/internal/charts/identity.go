package charts

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// identity says which version of which provider a folder or an address holds, if its name does not.
type identity struct{ typ, name, version string }

// addIdentityFlags adds --type, --name and --version to a command.
func addIdentityFlags(flags *pflag.FlagSet) *identity {
	i := &identity{}
	types := strings.Join(typeNames(), ", ")
	flags.StringVar(&i.typ, "type", "", "Type of the provider, if the source does not tell: "+types+".")
	cli.SetValues(flags, "type", typeNames()...)
	flags.StringVar(&i.name, "name", "", "Name of the provider, if the source does not tell.")
	flags.StringVar(&i.version, "version", "", "Version of the provider. Default: that of the source, or its newest.")

	return i
}

// typeNames returns the names of the types of providers.
func typeNames() []string { return cli.Map(v1alpha2.ProviderTypes(), cli.TypeName) }

// provider returns the provider that the flags name. What they leave out is that of a guess, which may be
// empty.
func (i *identity) provider(guess bundle.Provider) (bundle.Provider, error) {
	t := v1alpha2.ProviderType(guess.Type)

	if i.typ != "" {
		at := slices.Index(typeNames(), i.typ)
		if at < 0 {
			return bundle.Provider{}, fmt.Errorf("unknown --type %q; use one of %s", i.typ, strings.Join(typeNames(), ", "))
		}

		t = v1alpha2.ProviderTypes()[at]
	}

	name := cmp.Or(i.name, guess.Name)
	if t == v1alpha2.CoreProviderType {
		name = cmp.Or(name, "cluster-api")
	}

	if t == "" || name == "" {
		return bundle.Provider{}, errUnknownProvider
	}

	return source.Provider(t, name), nil
}

// errUnknownProvider says how to name a provider.
var errUnknownProvider = errors.New("it is not known which provider this is; set --type and --name, or name the " +
	"folder after the provider, such as infrastructure-example")

// ofFolder returns the provider of a folder with files: that of the folder's label, which is empty if its name is none,
// or the one that the flags name, whose type the name of the components tells as well.
func (i *identity) ofFolder(label bundle.Provider, names []string) (bundle.Provider, error) {
	guess := label

	for _, t := range v1alpha2.ProviderTypes() {
		if guess.Type == "" && slices.Contains(names, t.ComponentsFile()) {
			guess.Type = string(t)
		}
	}

	provider, err := i.provider(guess)
	if err == nil && label.Label != "" && provider != label {
		return provider, fmt.Errorf("this is the folder of %s, as its name says; leave out --type and --name", label.Label)
	}

	return provider, err
}

// checkArguments returns an error if the flags name one provider and there are several arguments.
func (i *identity) checkArguments(args []string) error {
	if len(args) > 1 && len(i.arguments()) > 0 {
		return errors.New("--type, --name and --version are for a single provider; run the command for each of them")
	}

	return nil
}

// arguments returns the flags that were set, for a command line.
func (i *identity) arguments() []string {
	var arguments []string

	for _, flag := range [][2]string{{"--type", i.typ}, {"--name", i.name}, {"--version", i.version}} {
		if flag[1] != "" {
			arguments = append(arguments, flag[0], flag[1])
		}
	}

	return arguments
}

// labelOf returns the provider whose label is the name of a folder; empty if it is none.
func labelOf(folder string) bundle.Provider {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return bundle.Provider{}
	}

	t, name := v1alpha2.ParseLabel(filepath.Base(abs))
	if t == v1alpha2.CoreProviderType && name != "cluster-api" {
		return bundle.Provider{}
	}

	return source.Provider(t, name)
}
