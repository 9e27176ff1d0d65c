// Package chartgen generates Helm charts from the components that Cluster API providers publish.
// Users can install such a chart with or without Capstan. A chart contains the objects as they were
// published, and one template, the same in all charts, that does with them what clusterctl does.
//
// Everything here is pure: a chart depends on nothing but what was published, and it never contains the
// value of a variable. Fetching, verifying, and storing are in the packages below.
package chartgen

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Version is the version of the chart format. Increase it whenever the same bundle results in a
// different chart.
const Version = "20"

// Folders and files of a chart.
const (
	objectsFolder = "objects/"
	crdsFolder    = "crds/"
	// tableFile describes the objects and their expressions for the template.
	tableFile = "files/objects.json"
)

// static contains the templates, which are the same in all charts.
//
//go:embed all:templates
var static embed.FS

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
	crds, err := newCRDs(components, b.Provider.Label)
	if err != nil {
		return nil, err
	}

	return newChart(b, components, crds)
}

// Rebuild generates the chart that has the content of another one: of a chart that another program may have written,
// only the name and the version, the objects, the CRDs, and the files that the provider published are used. If these
// are invalid, the error is a *bundle.InvalidError.
func Rebuild(c *chart.Chart) (*chart.Chart, error) {
	b := &bundle.Bundle{
		Provider: bundle.Provider{
			Type:  c.Metadata.Annotations[AnnotationProviderType],
			Name:  c.Metadata.Annotations[AnnotationProviderName],
			Label: c.Metadata.Name,
		},
		Version: c.Metadata.AppVersion,
		Source:  c.Metadata.Annotations[AnnotationSource],
	}

	var objects strings.Builder

	// Of objects with the same kind and name, the first one has the shortest file name. It has to come first again.
	files := slices.Clone(c.Files)
	slices.SortStableFunc(files, func(a, b chart.File) int { return cmp.Compare(len(a.Name), len(b.Name)) })

	for _, f := range files {
		if strings.HasPrefix(f.Name, objectsFolder) {
			fmt.Fprintf(&objects, "---\n%s\n", strings.TrimSuffix(string(f.Data), "\n"))
		}
	}

	b.Components = []byte(objects.String())

	for _, f := range Published(c) {
		if f.Name == bundle.MetadataFile {
			b.Metadata = f.Data
		} else {
			b.Templates = append(b.Templates, f)
		}
	}

	components, err := bundle.ParseComponents(b.Components)
	if errors.Is(err, bundle.ErrNoObject) && len(c.CRDs) > 0 {
		components, err = &bundle.Components{}, nil
	}

	if err != nil {
		return nil, err
	}

	crds, err := readCRDs(c.CRDs, b.Provider.Label)
	if err != nil {
		return nil, err
	}

	return newChart(b, components, crds)
}

// newChart returns the chart with the objects in the components, but not their CRDs, and the given ones.
func newChart(b *bundle.Bundle, components *bundle.Components, crds []crd) (*chart.Chart, error) {
	metadata, err := bundle.ParseMetadata(b.Metadata)
	if err != nil {
		return nil, err
	}

	contract, err := bundle.Contract(metadata, b.Version)
	if err != nil {
		return nil, err
	}

	c := &content{bundle: b, contract: contract, crds: crds, namespace: components.Namespace}
	if err := c.addObjects(components); err != nil {
		return nil, err
	}

	files, err := c.files()
	if err != nil {
		return nil, err
	}

	return chart.New(c.metadata(contentID(b, files)), files)
}

// contentID identifies what a provider published, as its chart holds it: the provider, the version, the objects, the
// CRDs, the metadata, and the cluster templates. It does not depend on the chart format.
func contentID(b *bundle.Bundle, files []chart.File) string {
	h := sha256.New()
	write := func(texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(h, "%d\n%s", len(text), text)
		}
	}

	write(b.Provider.Type, b.Provider.Name, b.Provider.Label, version(b))

	for _, f := range files {
		if isContent(f.Name, version(b)) {
			write(f.Name, string(f.Data))
		}
	}

	return hex.EncodeToString(h.Sum(nil))
}

// isContent reports whether a file holds what the provider published.
func isContent(name, version string) bool {
	return strings.HasPrefix(name, objectsFolder) || strings.HasPrefix(name, crdsFolder) ||
		strings.HasPrefix(name, publishedFolder(version))
}

// version returns the version of a bundle, with its "v".
func version(b *bundle.Bundle) string { return "v" + strings.TrimPrefix(b.Version, "v") }

// files returns all files of the chart except Chart.yaml, in a fixed order.
func (c *content) files() ([]chart.File, error) {
	table, err := json.MarshalIndent(c.table, "", " ")
	if err != nil {
		return nil, err
	}

	schema, err := c.schema()
	if err != nil {
		return nil, err
	}

	readme, err := c.readme()
	if err != nil {
		return nil, err
	}

	files := append(c.objects, //nolint:gocritic // the content is used once
		chart.File{Name: tableFile, Data: table},
		chart.File{Name: chart.ValuesFile, Data: c.valuesFile()},
		chart.File{Name: chart.SchemaFile, Data: schema},
		chart.File{Name: chart.ReadmeFile, Data: readme},
		chart.File{Name: publishedFolder(version(c.bundle)) + bundle.MetadataFile, Data: c.bundle.Metadata},
	)

	for _, crd := range c.crds {
		files = append(files, crd.file)
	}

	for _, t := range c.bundle.Templates {
		files = append(files, chart.File{Name: publishedFolder(version(c.bundle)) + t.Name, Data: t.Data})
	}

	entries, err := static.ReadDir("templates")
	if err != nil {
		return nil, err
	}

	for _, entry := range entries {
		data, err := static.ReadFile("templates/" + entry.Name())
		if err != nil {
			return nil, err
		}

		files = append(files, chart.File{Name: chart.TemplatesDir + entry.Name(), Data: data})
	}

	return files, nil
}

// publishedFolder returns the folder for the files that a chart has as they were published. It is named after the
// version, so that an unpacked chart is the folder of a provider in a local repository of clusterctl.
func publishedFolder(version string) string { return version + "/" }

// Published returns the files that a chart has as they were published: the metadata, and the cluster templates and
// ClusterClasses.
func Published(c *chart.Chart) []bundle.File {
	var files []bundle.File

	for _, f := range c.Files {
		if name, found := strings.CutPrefix(f.Name, publishedFolder(c.Metadata.AppVersion)); found {
			files = append(files, bundle.File{Name: name, Data: f.Data})
		}
	}

	return files
}

// PublishedMetadata returns the metadata of a chart as it was published; nil if the chart has none.
func PublishedMetadata(c *chart.Chart) []byte {
	return c.File(publishedFolder(c.Metadata.AppVersion) + bundle.MetadataFile)
}
