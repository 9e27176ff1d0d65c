// Package chartgen turns what a Cluster API provider publishes into a Helm chart that anyone can
// install, with or without Capstan. It is pure: the chart's bytes depend on the bundle alone, and
// no variable's value is ever part of it.
package chartgen

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// Version is the version of the chart format. It is raised when the same bundle gives another
// chart, and is part of each chart's content ID, so that stored charts of an older format are made
// anew.
const Version = "2"

// Annotations of Chart.yaml that say where a chart comes from and what it needs.
const (
	AnnotationProviderName     = v1alpha2.Prefix + "/provider-name"
	AnnotationProviderType     = v1alpha2.Prefix + "/provider-type"
	AnnotationContract         = v1alpha2.Prefix + "/contract"
	AnnotationSource           = v1alpha2.Prefix + "/source"
	AnnotationContentID        = v1alpha2.Prefix + "/content-id"
	AnnotationChartgenVersion  = v1alpha2.Prefix + "/chartgen-version"
	AnnotationDefaultNamespace = v1alpha2.Prefix + "/default-namespace"
	// AnnotationNamespaceLabels are the labels of the provider's Namespace, as
	// "key=value,key=value". A chart has no Namespace; whoever makes it should put them on it,
	// since some let privileged pods run.
	AnnotationNamespaceLabels = v1alpha2.Prefix + "/namespace-labels"
	// AnnotationRequiredKinds lists the kinds of the chart's objects that neither Kubernetes nor
	// the chart's own CRDs bring, as Kind.version.group and comma-separated: cert-manager's, as a
	// rule.
	AnnotationRequiredKinds = v1alpha2.Prefix + "/required-kinds"
	// AnnotationConversionWebhooks is how many of the chart's CRDs call a conversion webhook in the
	// default namespace.
	AnnotationConversionWebhooks = v1alpha2.Prefix + "/conversion-webhooks"
)

// static are the templates that all charts share.
//
//go:embed all:templates
var static embed.FS

// Build makes the chart of a bundle. Its error is a *bundle.InvalidError when the bundle is at
// fault.
func Build(b *bundle.Bundle) (*chart.Chart, error) {
	metadata, err := bundle.ParseMetadata(b.Metadata)
	if err != nil {
		return nil, err
	}

	contract, err := metadata.Contract(b.Version)
	if err != nil {
		return nil, err
	}

	components, err := bundle.OutlineComponents(b.Components)
	if err != nil {
		return nil, err
	}

	files, err := chartFiles(b, components, contract)
	if err != nil {
		return nil, err
	}

	return chart.New(chartMetadata(b, components, contract), files)
}

// ContentID identifies the chart that Build makes of a bundle: the bundle's content and the chart
// format.
func ContentID(b *bundle.Bundle) string {
	return Version + "-" + b.ContentID()
}

func chartMetadata(b *bundle.Bundle, components *bundle.Components, contract string) chart.Metadata {
	return chart.Metadata{
		APIVersion: "v2",
		Name:       b.Provider.Label,
		Version:    strings.TrimPrefix(b.Version, "v"),
		AppVersion: "v" + strings.TrimPrefix(b.Version, "v"),
		Description: fmt.Sprintf(
			"Cluster API %s %s, made from the provider's published components",
			b.Provider.Type,
			b.Provider.Name,
		),
		Type:     "application",
		Keywords: []string{"cluster-api", b.Provider.Name},
		Annotations: map[string]string{
			AnnotationProviderName:     b.Provider.Name,
			AnnotationProviderType:     b.Provider.Type,
			AnnotationContract:         contract,
			AnnotationSource:           b.Source,
			AnnotationContentID:        ContentID(b),
			AnnotationChartgenVersion:  Version,
			AnnotationDefaultNamespace: components.Namespace,
			AnnotationNamespaceLabels:  namespaceLabels(components),
			AnnotationRequiredKinds:    strings.Join(requiredKinds(components), ","),

			AnnotationConversionWebhooks: strconv.Itoa(conversionWebhooks(components)),
		},
	}
}

// chartFiles makes all files but Chart.yaml.
func chartFiles(b *bundle.Bundle, components *bundle.Components, contract string) ([]chart.File, error) {
	files, err := objectFiles(components, b.Provider.Label)
	if err != nil {
		return nil, err
	}

	shared, err := sharedTemplates()
	if err != nil {
		return nil, err
	}

	about := newContents(b, components, contract)

	schema, err := about.schema()
	if err != nil {
		return nil, err
	}

	readme, err := about.readme()
	if err != nil {
		return nil, err
	}

	files = append(append(files, shared...),
		chart.File{Name: chart.ValuesFile, Data: about.valuesFile()},
		chart.File{Name: chart.SchemaFile, Data: schema},
		chart.File{Name: chart.ReadmeFile, Data: readme},
		chart.File{Name: bundle.MetadataFile, Data: b.Metadata},
	)
	for _, t := range b.Templates {
		files = append(files, chart.File{Name: t.Name, Data: t.Data})
	}

	return files, nil
}

// sharedTemplates are the templates that all charts share.
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

// objectFiles makes one file of each object: a template, or a file in crds/. A Namespace object
// makes none: where a release goes is the installer's decision.
func objectFiles(components *bundle.Components, label string) ([]chart.File, error) {
	scopes := newScopes(components)
	names := fileNames{}

	var files []chart.File

	for i := range components.Documents {
		doc := &components.Documents[i]
		switch {
		case doc.IsNamespace():
		case doc.IsCRD():
			data, err := crdFile(doc, label)
			if err != nil {
				return nil, err
			}

			files = append(files, chart.File{Name: "crds/" + names.unique(doc.Object.GetName()) + ".yaml", Data: data})
		default:
			name := names.unique(doc.Object.GetKind() + "-" + doc.Object.GetName())
			files = append(files, chart.File{Name: chart.TemplatesDir + name + ".yaml", Data: objectTemplate(doc, name, scopes)})
		}
	}

	return files, nil
}

// objectTemplate is the template of one object: its text, variables as template expressions, and
// the call that renders it.
func objectTemplate(doc *bundle.Document, name string, scopes scopes) []byte {
	scope := "cluster"
	if scopes.namespaced(doc.Object.GroupVersionKind().GroupKind()) {
		scope = "namespaced"
	}

	text := strings.TrimRight(doc.Text.Template(), "\r\n")

	return fmt.Appendf(
		nil,
		"{{- define %[1]q }}\n%[2]s\n{{- end }}\n{{- include \"capstan.object\" (list . %[1]q %[3]q) }}\n",
		name,
		text,
		scope,
	)
}

// fileNames gives each object of a chart a file name of its own.
type fileNames map[string]int

var notInFileName = regexp.MustCompile(`[^a-z0-9.-]+`)

// unique turns a name into a file name; the second object of a name gets "-2".
func (n fileNames) unique(name string) string {
	name = notInFileName.ReplaceAllString(strings.ToLower(name), "-")

	n[name]++
	if count := n[name]; count > 1 {
		return n.unique(fmt.Sprintf("%s-%d", name, count))
	}

	return name
}
