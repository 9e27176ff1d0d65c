package charts

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// isFlat reports whether a path is a folder with the files of one version that is not in the layout of a
// local repository, such as the output folder of a release.
func isFlat(path string) (bool, error) {
	if ranges.IsExact(filepath.Base(filepath.Clean(path))) {
		_, known := labelOf(filepath.Dir(filepath.Clean(path)))
		return !known, nil
	}

	names, err := fileNames(path)
	if err != nil {
		return false, err
	}

	for _, name := range names {
		if name == bundle.MetadataFile || strings.HasSuffix(name, bundle.ComponentsFile) {
			return true, nil
		}
	}

	return false, nil
}

// labelOf returns the provider whose label is the name of a folder, and whether it can be one.
func labelOf(folder string) (bundle.Provider, bool) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return bundle.Provider{}, false
	}

	t, name := v1alpha2.ParseLabel(filepath.Base(abs))

	return source.Provider(t, name), t != v1alpha2.CoreProviderType || name == "cluster-api"
}

// lintFlat checks a folder with the files of one version.
func (i *lintInput) lintFlat(path string, err error) ([]lint.Finding, error) {
	if err != nil {
		return nil, err
	}

	names, err := fileNames(path)
	if err != nil {
		return nil, err
	}

	files := map[string][]byte{}

	for _, name := range names {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}

		if files[name], err = os.ReadFile(filepath.Join(path, name)); err != nil {
			return nil, err
		}
	}

	if v := filepath.Base(filepath.Clean(path)); ranges.IsExact(v) {
		i.identity.version = cmp.Or(i.identity.version, v)
	}

	release, err := releaseOf(files, i.identity)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return lint.Folder{Path: path, Names: names, Components: release.components}.Lint(release.bundle, nil), nil
}

// releaseFiles are the files of one version.
type releaseFiles struct {
	bundle *bundle.Bundle
	// components is the name of the file with the components; empty if there is none.
	components string
}

// releaseOf returns the files of one version as a bundle. The name of the components tells the type of the
// provider. Without a version, it is the newest series of metadata.yaml.
func releaseOf(files map[string][]byte, identity *identityFlags) (*releaseFiles, error) {
	var guess bundle.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		if files[t.ComponentsFile()] != nil && guess.Type == "" {
			guess.Type = string(t)
		}
	}

	provider, err := identity.provider(guess)
	if err != nil {
		return nil, err
	}

	b := &bundle.Bundle{Provider: provider, Version: identity.version, Metadata: files[bundle.MetadataFile]}
	if b.Version == "" {
		b.Version = newestSeries(b.Metadata)
	}

	var names []string

	for name, data := range files {
		names = append(names, name)

		if bundle.IsTemplate(name) {
			b.Templates = append(b.Templates, bundle.File{Name: name, Data: data})
		}
	}

	slices.SortFunc(b.Templates, func(a, b bundle.File) int { return cmp.Compare(a.Name, b.Name) })

	components, err := source.ChooseComponents(provider, names)
	if err != nil {
		return nil, err
	}

	b.Components = files[components]

	return &releaseFiles{bundle: b, components: components}, nil
}

// newestSeries returns the first version of the newest series of metadata.yaml.
func newestSeries(metadata []byte) string {
	m, err := bundle.ParseMetadata(metadata)
	if err != nil {
		return "v0.0.0"
	}

	newest := slices.MaxFunc(m.ReleaseSeries, func(a, b bundle.ReleaseSeries) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	})

	return fmt.Sprintf("v%d.%d.0", newest.Major, newest.Minor)
}

// lintChart checks the objects that a chart renders, its CRDs, and its cluster templates. Lines are not
// reported for what is rendered.
func (i *lintInput) lintChart(path string, c *chart.Chart) ([]lint.Finding, error) {
	provider, err := i.identity.provider(bundle.Provider{
		Type: c.Metadata.Annotations[chartgen.AnnotationProviderType],
		Name: c.Metadata.Annotations[chartgen.AnnotationProviderName],
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	components, err := componentsOf(c, provider)
	if err != nil {
		return nil, err
	}

	b := &bundle.Bundle{
		Provider:   provider,
		Version:    c.Metadata.AppVersion,
		Metadata:   c.File(bundle.MetadataFile),
		Components: components,
	}

	for _, f := range c.Files {
		if bundle.IsTemplate(f.Name) {
			b.Templates = append(b.Templates, bundle.File{Name: f.Name, Data: f.Data})
		}
	}

	findings := lint.Bundle(b, nil)
	for n, f := range findings {
		if f.File == bundle.ComponentsFile {
			f.File, findings[n].Line = "", 0
		}

		findings[n].File = filepath.Join(path, f.File)
	}

	return findings, nil
}

// componentsOf returns the components that a chart was built from, as far as it has them: the rendered
// objects, the CRDs and the Namespace.
func componentsOf(c *chart.Chart, provider bundle.Provider) ([]byte, error) {
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
