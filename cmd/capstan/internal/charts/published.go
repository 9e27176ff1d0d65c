package charts

import (
	"fmt"
	"path/filepath"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/contract"
)

// published is what a place has of a version of a provider: a chart, or files.
type published struct {
	// place is a path or an address.
	place string
	// isFolder reports whether the place is a folder, whose files findings name by their paths.
	isFolder bool
	// chart is nil if files are published.
	chart *chart.Chart
	// bundle is nil if a chart is published.
	bundle *bundle.Bundle
	// names are those of all files; nil if the place does not tell them by itself.
	names []string

	// parsed and built are set by build.
	parsed *bundle.Components
	built  *chart.Chart
}

// build returns the chart: the one that is published, or that of the files.
func (p *published) build() (*chart.Chart, error) {
	if p.built = p.chart; p.built != nil {
		return p.built, nil
	}

	var err error
	if p.parsed, err = bundle.ParseComponents(p.bundle.Components); err == nil {
		p.built, err = chartgen.BuildParsed(p.bundle, p.parsed)
	}

	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.place, err)
	}

	return p.built, nil
}

// lint checks the files, or what a chart renders. Unless a chart was built before, errors in the components are
// findings.
func (p *published) lint(id *identity) ([]contract.Finding, error) {
	if p.chart != nil {
		return lintChart(p.place, p.chart, id)
	}

	findings, err := lintFiles(p.place, p.bundle, p.names, p.parsed)
	if p.isFolder {
		for i, finding := range findings {
			findings[i].File = filepath.Join(p.place, finding.File)
		}
	}

	return findings, err
}
