package chartgen

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// static contains the templates that are the same in all charts.
//
//go:embed all:templates
var static embed.FS

// chartFiles returns all files of the chart except Chart.yaml.
func chartFiles(b *bundle.Bundle, components *bundle.Components, s *summary) ([]chart.File, error) {
	objects, err := objectFiles(components, s)
	if err != nil {
		return nil, err
	}

	shared, err := sharedTemplates()
	if err != nil {
		return nil, err
	}

	schema, err := s.schema()
	if err != nil {
		return nil, err
	}

	readme, err := s.readme()
	if err != nil {
		return nil, err
	}

	files := slices.Concat(objects, shared, []chart.File{
		{Name: chart.ValuesFile, Data: s.valuesFile()},
		{Name: chart.SchemaFile, Data: schema},
		{Name: chart.ReadmeFile, Data: readme},
		{Name: publishedFolder(s.Version) + bundle.MetadataFile, Data: b.Metadata},
	})

	for _, t := range b.Templates {
		files = append(files, chart.File{Name: publishedFolder(s.Version) + t.Name, Data: t.Data})
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

// sharedTemplates returns the templates that are the same in all charts.
func sharedTemplates() ([]chart.File, error) {
	files := []chart.File{{Name: chart.TemplatesDir + "_expr.tpl", Data: []byte(expr.Helpers)}}

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

// objectFiles returns one file for each object: a CRD in crds/, or a template. It leaves out the
// Namespace, because the namespace of a release is the installer's decision.
func objectFiles(components *bundle.Components, s *summary) ([]chart.File, error) {
	names, deployments := fileNames{}, map[string]string{}

	var (
		files []chart.File
		texts renderedTexts
	)

	lastCRDs := map[string]*bundle.Document{} // by name

	for i := range components.Documents {
		if doc := &components.Documents[i]; doc.IsCRD() {
			lastCRDs[doc.Object.GetName()] = doc
		}
	}

	for i := range components.Documents {
		doc := &components.Documents[i]

		if err := checkTypes(doc); err != nil {
			return nil, err
		}

		if err := checkImages(doc); err != nil {
			return nil, err
		}

		switch {
		case doc.IsNamespace():
		case doc.IsCRD() && doc != lastCRDs[doc.Object.GetName()]: // clusterctl applies both, Helm only the first
		case doc.IsCRD():
			data, err := crdFile(doc, s.Provider.Label)
			if err != nil {
				return nil, err
			}

			name := names.unique(doc.Object.GetName())
			files = append(files, chart.File{Name: "crds/" + name + ".yaml", Data: data})
		default:
			name := names.unique(baseName(doc.Object.GetKind(), doc.Object.GetName()))
			define := defineText(doc, name)
			data := define + includeObject(doc, name, s.scopes)
			files = append(files, chart.File{Name: chart.TemplatesDir + name + ".yaml", Data: []byte(data)})

			if doc.Object.GetKind() == "Deployment" {
				deployments[doc.Object.GetName()] = name
			}

			if err := texts.add(doc, name, define); err != nil {
				return nil, err
			}
		}
	}

	return append(files, s.availabilityFiles(components, deployments, names)...), texts.check()
}

// availabilityFiles returns the templates for the value highAvailability. templates are the names of those of the
// Deployments, by name.
func (s *summary) availabilityFiles(
	components *bundle.Components, templates map[string]string, names fileNames,
) []chart.File {
	var published budgets

	for i := range components.Documents {
		if object := components.Documents[i].Object; object.GetKind() == "PodDisruptionBudget" {
			published = append(published, object.Object)
		}
	}

	var files []chart.File

	for _, d := range s.Deployments {
		name := names.unique(baseName("PodDisruptionBudget", d.Name))

		if data := d.availabilityFile(templates[d.Name], name, published); data != nil {
			files = append(files, chart.File{Name: chart.TemplatesDir + name + ".yaml", Data: data})
		}
	}

	return files
}

// defineText returns the definition of a named template with the text of an object, in which
// variables are template expressions. The text follows the first line break. It must not lose the white
// space at its end, which may be part of a block scalar.
func defineText(doc *bundle.Document, name string) string {
	return fmt.Sprintf("{{- define %q }}\n%s{{ end }}\n", name, doc.Text.Template())
}

// includeObject returns the action that renders the text of an object with capstan.object. Its values are
// found by the name in the chart's schema. The rendered object has another one if variables are part of it.
func includeObject(doc *bundle.Document, name string, scopes bundle.Scopes) string {
	scope := "cluster"
	if scopes.Namespaced(doc.Object.GroupVersionKind().GroupKind()) {
		scope = "namespaced"
	}

	arguments := fmt.Sprintf("%q %q %q", name, scope, doc.Object.GetName())
	for _, v := range doc.Text.Variables() {
		arguments += fmt.Sprintf(" %q", v.Name)
	}

	return fmt.Sprintf("{{- include \"capstan.object\" (list . %s) }}\n", arguments)
}
