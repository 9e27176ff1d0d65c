package charts

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

//go:embed templates
var templates embed.FS

// newProvider describes a new provider.
type newProvider struct {
	Type v1alpha2.ProviderType
	Name string
	// Version with a leading v.
	Version string
	// Image of the manager.
	Image string
}

// scaffold returns the files of a release of the provider, by their names in the release.
func scaffold(p newProvider) ([]chart.File, error) {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(p.Version, "v"))
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", p.Version, err)
	}

	d := newData(p, version)

	parsed, err := template.New("").Funcs(template.FuncMap{"indent": indent}).ParseFS(templates, "templates/*")
	if err != nil {
		return nil, err
	}

	names := map[string]string{"manager.yaml": p.Type.ComponentsFile(), "metadata.yaml": "metadata.yaml"}
	if p.Type == v1alpha2.InfrastructureProviderType {
		names["cluster-template.yaml"] = "cluster-template.yaml"
	}

	var files []chart.File

	for from, to := range names {
		var out bytes.Buffer
		if err := parsed.ExecuteTemplate(&out, from, d); err != nil {
			return nil, err
		}

		files = append(files, chart.File{Name: to, Data: out.Bytes()})
	}

	slices.SortFunc(files, func(a, b chart.File) int { return strings.Compare(a.Name, b.Name) })

	return files, nil
}

// data are what the templates use.
type data struct {
	// Label is clusterctl's name of the provider, Namespace its default one.
	Label, Namespace, Image string
	// Prefix begins the names of objects, Prefixed those of kinds, and Variable those of variables.
	Prefix, Prefixed, Variable string
	// Group is the API group of the kinds.
	Group        string
	Kinds        []kind
	Major, Minor uint64
}

func newData(p newProvider, version *semver.Version) *data {
	label := p.Type.Label(p.Name)
	d := &data{
		Label: label, Namespace: label + "-system", Image: p.Image, Prefix: label, Prefixed: camelCase(p.Name),
		Variable: strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_")), Group: groups[p.Type],
		Major: version.Major(), Minor: version.Minor(),
	}

	for _, k := range kinds[p.Type] {
		k.Provider, k.Kind = d, d.Prefixed+k.Kind
		d.Kinds = append(d.Kinds, k)
	}

	return d
}

// camelCase returns in-memory as InMemory.
func camelCase(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}

	return b.String()
}

func indent(columns int, text string) string {
	margin := strings.Repeat(" ", columns)
	return margin + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+margin)
}
