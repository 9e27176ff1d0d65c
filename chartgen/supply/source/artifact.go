package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Artifact is a repository with one OCI artifact for each version. An artifact is either a chart that
// Capstan built, or has the provider's files as layers with their names in the title annotation, as
// `oras push` and cluster-api-operator publish them. If the address has a tag, the artifact may have
// further versions, in files whose names contain them.
type Artifact struct{ repository }

var _ Remote = &Artifact{}

// NewArtifact returns the source of a provider at an address such as
// oci://registry.example.com/capi/infrastructure-aws, optionally with a tag and a digest. The error
// is an *AddressError.
func NewArtifact(address string, provider bundle.Provider, options OCIOptions) (*Artifact, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, &AddressError{err.Error()}
	}

	return &Artifact{repository{OCIOptions: options, ref: ref, provider: provider, several: true}}, nil
}

// Chart reads a version that is a provider's chart, for which nothing is generated. It returns nil if the artifact is
// not a chart; use Fetch then.
func (a *Artifact) Chart(ctx context.Context, version Version) (*oci.Chart, error) {
	artifact, err := a.artifact(ctx, version)
	if err != nil || !artifact.IsChart() {
		return nil, err
	}

	chart, err := a.access.Client.ReadChart(ctx, artifact)
	if err != nil {
		return nil, contentError(err)
	}

	if !chartgen.IsProvider(chart.Metadata) {
		return nil, &bundle.InvalidError{
			File: artifact.Reference.String(),
			Reason: fmt.Sprintf("is the Helm chart %.100s, which was not built from a provider's components; "+
				"install it with helm, Flux or Argo CD", chart.Metadata.Name),
		}
	}

	if found := withV(chart.Metadata.Version); found != version.Name {
		return nil, &bundle.InvalidError{
			File:   artifact.Reference.String(),
			Reason: fmt.Sprintf("is the chart of version %s, not %s", found, version.Name),
		}
	}

	return chart, nil
}

// Fetch reads the files of a version.
func (a *Artifact) Fetch(ctx context.Context, version Version) (*bundle.Bundle, error) {
	artifact, err := a.artifact(ctx, version)
	if err != nil {
		return nil, err
	}

	files := layersByTitle(artifact)

	metadata, err := a.readFirst(ctx, artifact, files, a.metadataNames(version))
	if err != nil {
		return nil, err
	}

	components, err := a.readFirst(ctx, artifact, files, a.componentsNames(version))
	if err != nil {
		return nil, err
	}

	templates, err := a.readTemplates(ctx, artifact, files)
	if err != nil {
		return nil, err
	}

	return &bundle.Bundle{
		Provider:   a.provider,
		Version:    version.Name,
		Source:     artifact.Reference.String(),
		Metadata:   metadata,
		Components: components,
		Templates:  templates,
	}, nil
}

// readTemplates reads the cluster templates and ClusterClasses among the files.
func (a *Artifact) readTemplates(
	ctx context.Context,
	artifact *oci.Artifact,
	files map[string]ocispec.Descriptor,
) ([]bundle.File, error) {
	var templates []bundle.File

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isTemplate(a.provider, name) {
			continue
		}

		data, err := a.access.Client.Blob(ctx, artifact.Reference, files[name], maxMetadata)
		if err != nil {
			return nil, contentError(err)
		}

		templates = append(templates, bundle.File{Name: name, Data: data})
		if err := checkTemplates(templates); err != nil {
			return nil, err
		}
	}

	return templates, nil
}

// Metadata reads the metadata.yaml of a version.
func (a *Artifact) Metadata(ctx context.Context, version Version) ([]byte, error) {
	artifact, err := a.artifact(ctx, version)
	if err != nil {
		return nil, err
	}

	if artifact.IsChart() {
		c, err := a.access.Client.ReadChart(ctx, artifact)
		if err != nil {
			return nil, contentError(err)
		}

		return chartgen.PublishedMetadata(c.Chart), nil
	}

	return a.readFirst(ctx, artifact, layersByTitle(artifact), a.metadataNames(version))
}

// artifact reads the manifest of a version after checking that it is trusted.
func (a *Artifact) artifact(ctx context.Context, version Version) (*oci.Artifact, error) {
	pinned, err := a.resolve(ctx, version)
	if err != nil {
		return nil, err
	}

	artifact, err := a.access.Client.Artifact(ctx, pinned)
	if err != nil {
		return nil, contentError(err)
	}

	// The names of other files do not say which version they are.
	files := layersByTitle(artifact)
	isOffered := slices.ContainsFunc(a.qualifiedNames(version, bundle.ComponentsFile), func(name string) bool {
		_, exists := files[name]
		return exists
	})

	if a.isOther(version) && !isOffered {
		return nil, a.otherVersion(version)
	}

	return artifact, nil
}

// layersByTitle returns the layers that have a title annotation.
func layersByTitle(artifact *oci.Artifact) map[string]ocispec.Descriptor {
	files := map[string]ocispec.Descriptor{}

	for _, layer := range artifact.Manifest.Layers {
		if title := layer.Annotations[ocispec.AnnotationTitle]; title != "" {
			files[title] = layer
		}
	}

	return files
}

// metadataNames returns the possible names of the metadata, most specific first.
func (a *Artifact) metadataNames(version Version) []string {
	return append(a.qualifiedNames(version, bundle.MetadataFile), bundle.MetadataFile)
}

// componentsNames returns the possible names of the components, most specific first.
func (a *Artifact) componentsNames(version Version) []string {
	t := v1alpha2.ProviderType(a.provider.Type)

	return slices.Compact(append(
		a.qualifiedNames(version, bundle.ComponentsFile),
		t.Name()+"-"+bundle.ComponentsFile,
		t.ComponentsFile(), // the same for most types
		bundle.ComponentsFile,
	))
}

// qualifiedNames returns the names that cluster-api-operator gives a file of this provider and version, with
// which several providers can share an artifact: infrastructure-aws-v2.11.1-metadata.yaml, and the same without
// the "v", for versions that are published without it.
func (a *Artifact) qualifiedNames(version Version, file string) []string {
	prefix := v1alpha2.ProviderType(a.provider.Type).Name() + "-" + a.provider.Name

	return []string{
		fmt.Sprintf("%s-%s-%s", prefix, version.Name, file),
		fmt.Sprintf("%s-%s-%s", prefix, withoutV(version.Name), file),
	}
}

// readFirst reads the first of the names that exists.
func (a *Artifact) readFirst(
	ctx context.Context,
	artifact *oci.Artifact,
	files map[string]ocispec.Descriptor,
	names []string,
) ([]byte, error) {
	for _, name := range names {
		layer, ok := files[name]
		if !ok {
			continue
		}

		data, err := a.access.Client.Blob(ctx, artifact.Reference, layer, limit.MaxText)

		return data, contentError(err)
	}

	const maxListed = 10

	present := "no layer with a title annotation"

	if len(files) > 0 {
		all := slices.Sorted(maps.Keys(files))
		present = "only " + strings.Join(all[:min(len(all), maxListed)], ", ")
	}

	return nil, &bundle.InvalidError{
		File: artifact.Reference.String(),
		Reason: fmt.Sprintf(
			"has none of %s, but %s; push the files of a release, as oras push does",
			strings.Join(names, ", "),
			present,
		),
	}
}

// contentError turns an *oci.Error of reason Invalid into a *bundle.InvalidError, and returns other
// errors as they are.
func contentError(err error) error {
	var e *oci.Error
	if errors.As(err, &e) && e.Reason == oci.Invalid {
		return &bundle.InvalidError{File: e.Reference, Reason: e.Message, Err: err}
	}

	return err
}
