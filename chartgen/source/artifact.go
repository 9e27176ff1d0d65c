package source

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// artifacts are a repository with one OCI artifact for each version. An artifact is either a chart that
// Capstan built, or has the provider's files as layers with their names in the title annotation, as
// `oras push` and cluster-api-operator publish them. If the address has a tag, the artifact may have
// further versions, in files whose names contain them.
type artifacts struct{ *repository }

// NewArtifact returns the source of a provider at an address such as
// oci://registry.example.com/capi/infrastructure-aws, optionally with a tag and a digest. The error
// is of the kind Refused.
func NewArtifact(address string, provider bundle.Provider, options OCIOptions) (*Source, error) {
	r, err := newRepository(address, provider, options)
	if err != nil {
		return nil, err
	}

	return r.source(artifacts{r}, "oci"), nil
}

// Files finds the files of a version, or reads its chart.
func (a artifacts) Files(ctx context.Context, version Version) (*Files, error) {
	pinned, err := a.resolve(ctx, version)
	if err != nil {
		return nil, err
	}

	artifact, err := a.access.Client.Artifact(ctx, pinned)
	if err != nil {
		return nil, damaged(err)
	}

	layers, named := a.layers(artifact, version)
	if a.isOther(version) && !named { // the names of other files do not say which version they are
		return nil, a.otherVersion(version)
	}

	if artifact.IsChart() {
		return a.chart(ctx, artifact, version)
	}

	files := &Files{
		Place: artifact.Reference.String(),
		names: slices.Sorted(maps.Keys(layers)),
		read: func(ctx context.Context, name string, limit int64) ([]byte, error) {
			data, err := a.access.Client.Blob(ctx, artifact.Reference, layers[name], limit)

			return data, damaged(err)
		},
	}

	if _, exists := layers[bundle.MetadataFile]; exists {
		files.Metadata, err = files.read(ctx, bundle.MetadataFile, maxMetadata)
	}

	return files, err
}

// versionedFile matches names of files that contain a version.
var versionedFile = regexp.MustCompile(`-v?[0-9]+\.[0-9]+\.[0-9]+.*-(components|metadata)\.yaml$`)

// layers returns the layers with a title annotation by the name that the file has in a release, and reports whether
// there are components whose name is that of the version. Several providers and versions can share an artifact with
// the names that cluster-api-operator gives files, infrastructure-aws-v2.11.1-metadata.yaml, or without the "v" for
// versions that are published so.
func (a artifacts) layers(artifact *oci.Artifact, version Version) (map[string]ocispec.Descriptor, bool) {
	titles, layers := map[string]ocispec.Descriptor{}, map[string]ocispec.Descriptor{}

	for _, layer := range artifact.Manifest.Layers {
		if title := layer.Annotations[ocispec.AnnotationTitle]; title != "" {
			titles[title] = layer
			if !versionedFile.MatchString(title) {
				layers[title] = layer
			}
		}
	}

	named := false
	t := v1alpha2.ProviderType(a.provider.Type)

	for _, v := range []string{withoutV(version.Name), version.Name} {
		prefix := fmt.Sprintf("%s-%s-%s-", t.Name(), a.provider.Name, v)
		if layer, exists := titles[prefix+bundle.MetadataFile]; exists {
			layers[bundle.MetadataFile] = layer
		}

		if layer, exists := titles[prefix+bundle.ComponentsFile]; exists {
			layers[t.ComponentsFile()], named = layer, true
		}
	}

	return layers, named
}

// chart reads a version that is a provider's chart.
func (a artifacts) chart(ctx context.Context, artifact *oci.Artifact, version Version) (*Files, error) {
	published, err := a.access.Client.ReadChart(ctx, artifact)
	if err != nil {
		return nil, damaged(err)
	}

	files := &Files{
		Place: artifact.Reference.String(), Chart: published.Chart, Metadata: chartgen.PublishedMetadata(published.Chart),
	}
	invalid := &transport.Error{Kind: transport.Invalid, Place: files.Place}
	found, annotations := withV(published.Metadata.Version), published.Metadata.Annotations

	switch {
	case annotations[chartgen.AnnotationContentID] == "" || annotations[chartgen.AnnotationContract] == "":
		invalid.Problem = fmt.Sprintf("is the Helm chart %.100s, which was not built from a provider's components",
			published.Metadata.Name)
		invalid.Fix = "install it with helm, Flux or Argo CD"
	case found != version.Name:
		invalid.Problem = fmt.Sprintf("is the chart of version %s, not %s", found, version.Name)
	default:
		return files, nil
	}

	return nil, invalid
}
