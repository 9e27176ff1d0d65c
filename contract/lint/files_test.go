package lint_test

import (
	"strings"
	"testing"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// brokenFiles break the rules about files and metadata.yaml.
var brokenFiles = []brokenCase{
	{
		"provider/name",
		"upper case",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Provider.Name = "Example" },
		`"Example"`,
	},
	{
		"provider/name",
		"a hyphen at the end",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Provider.Name = "example-" },
		"which is not a valid name",
	},
	{
		"provider/name",
		"50 characters after control-plane",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) {
			b.Provider.Name = strings.Repeat("a", 50)
			b.Provider.Label = "control-plane-" + b.Provider.Name
		},
		"has 64 characters, 1 more than a label may have",
	},
	{
		"provider/version",
		"two numbers",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Version = "v1.2" },
		`"v1.2"`,
	},
	{
		"files/required",
		"no components",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Components = nil },
		"is missing",
	},
	{
		"files/required",
		"no metadata",
		controlPlaneProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Metadata = nil },
		"is missing",
	},
	{
		"files/templates",
		"none",
		infrastructureProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Templates = nil },
		"is not published",
	},
	{
		"files/names",
		"a template without a hyphen",
		infrastructureProvider,
		func(_ *testing.T, b *bundle.Bundle) { b.Templates[0].Name = "cluster-template_dev.yaml" },
		"is not named",
	},
	{
		"metadata/valid",
		"not YAML",
		controlPlaneProvider,
		replaceMetadata("kind: Metadata", "kind: [Metadata"),
		"not valid YAML",
	},
	{
		"metadata/valid",
		"no apiVersion",
		controlPlaneProvider,
		replaceMetadata("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n", ""),
		`apiVersion ""`,
	},
	{
		"metadata/series",
		"a contract that cannot be",
		controlPlaneProvider,
		replaceMetadata("v1beta2", "v1-beta2"),
		`"v1-beta2"`,
	},
	{"metadata/kind", "no kind", controlPlaneProvider, replaceMetadata("kind: Metadata\n", ""), "has no kind"},
	{
		"metadata/series",
		"another series",
		controlPlaneProvider,
		replaceMetadata("minor: 2", "minor: 1"),
		"does not list the series 1.2 of version v1.2.3",
	},
	{
		"metadata/series-entries",
		"a series twice",
		controlPlaneProvider,
		replaceMetadata("releaseSeries:\n", "releaseSeries:\n- {major: 1, minor: 2, contract: v1beta1}\n"),
		"1.2 twice",
	},
	{
		"metadata/series-entries",
		"a contract of another series that cannot be",
		controlPlaneProvider,
		replaceMetadata("releaseSeries:\n", "releaseSeries:\n- {major: 1, minor: 1, contract: beta}\n"),
		`maps the series 1.1 to the contract "beta"`,
	},
}
