package ui

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// providerPath returns the path of a provider's page below the base.
func providerPath(v view.Provider) string {
	return "providers/" + url.PathEscape(v.Kind) + "/" + url.PathEscape(v.Namespace) + "/" + url.PathEscape(v.Name)
}

// shellSafe matches arguments that need no quotes in a shell.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// command returns a command line of capstan about a provider, to be copied into a shell.
func command(v view.Provider, args ...string) string {
	words := append([]string{"capstan"}, args...)
	words = append(words, v.Label, "-n", v.Namespace)

	for i, word := range words {
		words[i] = quote(word)
	}

	return strings.Join(words, " ")
}

// quote quotes an argument for a shell, if it needs that.
func quote(word string) string {
	if shellSafe.MatchString(word) {
		return word
	}

	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// typeNames are the types of providers as headings.
var typeNames = map[v1alpha2.ProviderType]string{
	v1alpha2.CoreProviderType:             "Core",
	v1alpha2.BootstrapProviderType:        "Bootstrap",
	v1alpha2.ControlPlaneProviderType:     "Control plane",
	v1alpha2.InfrastructureProviderType:   "Infrastructure",
	v1alpha2.IPAMProviderType:             "IP address management",
	v1alpha2.RuntimeExtensionProviderType: "Runtime extensions",
	v1alpha2.AddonProviderType:            "Add-ons",
}
