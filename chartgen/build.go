// Package chartgen generates Helm charts from the components that Cluster API providers publish.
// Users can install such a chart with or without Capstan. The package also reads what it wrote back
// from a chart: its CRDs, the labels of its namespace, and its variables. Of charts that it did not
// write, it reads the CRDs.
//
// Everything here is pure: a chart depends on nothing but the bundle it is generated from, and it
// never contains the value of a variable. Fetching, verifying, and storing are in the packages
// below chartgen/supply.
package chartgen

import (
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Version is the version of the chart format. Increase it whenever the same bundle results in a
// different chart. It is part of each chart's content ID, so stored charts of an older format are
// rebuilt.
const Version = "13"

// Build generates the chart of a bundle. If the bundle is invalid, the error is a
// *bundle.InvalidError.
func Build(b *bundle.Bundle) (*chart.Chart, error) {
	components, err := bundle.ParseComponents(b.Components)
	if err != nil {
		return nil, err
	}

	return BuildParsed(b, components)
}

// BuildParsed is Build for a bundle whose components have been parsed.
func BuildParsed(b *bundle.Bundle, components *bundle.Components) (*chart.Chart, error) {
	metadata, err := bundle.ParseMetadata(b.Metadata)
	if err != nil {
		return nil, err
	}

	contract, err := metadata.Contract(b.Version)
	if err != nil {
		return nil, err
	}

	s := newSummary(b, components, contract)

	files, err := chartFiles(b, components, s)
	if err != nil {
		return nil, err
	}

	return chart.New(chartMetadata(b, s), files)
}

// ContentID identifies the chart that Build generates from a bundle: by the chart format and the
// content of the bundle.
func ContentID(b *bundle.Bundle) string {
	return Version + "-" + b.ContentID()
}
