package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/lint"
)

// lintFiles checks what a place has of a version, and the names of the files there, as far as these are known.
func lintFiles(
	place string, b *bundle.Bundle, names []string, components *bundle.Components,
) ([]contract.Finding, error) {
	file, err := source.Components(b.Provider, names)
	if err != nil {
		return nil, fmt.Errorf("%s %w", place, err)
	}

	findings := append(lint.Names(b.Provider, names), lint.Bundle(b, components)...)
	for i, finding := range findings {
		if finding.File == bundle.ComponentsFile {
			findings[i].File = cmp.Or(file, finding.File)
		}
	}

	return findings, nil
}

// lintChart checks the objects that a chart renders, its CRDs, and its cluster templates.
func lintChart(path string, c *chart.Chart, id *identity) ([]contract.Finding, error) {
	provider, err := id.provider(bundle.Provider{
		Type: c.Metadata.Annotations[chartgen.AnnotationProviderType],
		Name: c.Metadata.Annotations[chartgen.AnnotationProviderName],
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	components, err := componentsOf(c, provider)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	b := &bundle.Bundle{
		Provider:   provider,
		Version:    c.Metadata.AppVersion,
		Metadata:   chartgen.PublishedMetadata(c),
		Components: components,
	}

	for _, f := range chartgen.Published(c) {
		if bundle.IsTemplate(f.Name) {
			b.Templates = append(b.Templates, f)
		}
	}

	findings := lint.Bundle(b, nil)
	for n, f := range findings {
		if f.File == bundle.ComponentsFile {
			f.File = ""
		}

		findings[n].File = strings.TrimSuffix(path+"/"+f.File, "/") // of an archive, or of an address
	}

	return findings, nil
}

// componentsOf returns the components that a chart was built from, as far as it has them: the rendered
// objects, the CRDs and the Namespace. Templates of others are not rendered: they could take any time.
func componentsOf(c *chart.Chart, provider bundle.Provider) ([]byte, error) {
	c, err := chartgen.Rebuild(c)
	if err != nil {
		return nil, err
	}

	namespace := cmp.Or(c.Metadata.Annotations[chartgen.AnnotationDefaultNamespace], provider.Label+"-system")

	manifest, err := render.Manifest(c, namespace, nil)
	if err != nil {
		return nil, err
	}

	crds, err := chartgen.JoinCRDs(c, "")
	if err != nil {
		return nil, err
	}

	head := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  labels: {%s: %s}\n",
		namespace, v1alpha2.ClusterctlProviderLabel, provider.Label)

	return slices.Concat([]byte(head), crds, []byte(manifest)), nil
}
