package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Artifact is an OCI artifact for each version: the files of a release as layers with their names
// in the title annotation, as cluster-api-operator and `oras push` publish them, or a Helm chart,
// made by Capstan or by anyone.
type Artifact struct{ repository }

var (
	_ ChartSource = &Artifact{}
	_ Remote      = &Artifact{}
	_ TaggedSource      = &Artifact{}
)

// maxRelease bounds all files of a release.
const maxTotalSize = 2 * maxFileSize

// NewArtifact makes the source of a provider at an address such as
// oci://registry.example.com/capi/infrastructure-aws, which may have a tag and a digest.
func NewArtifact(address string, provider bundle.Provider, options OCIOptions) (*Artifact, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, &AddressError{err.Error()}
	}

	return &Artifact{repository{OCIOptions: options, ref: ref, provider: provider}}, nil
}

// Chart reads a release that is a Helm chart; nil when it is files.
func (a *Artifact) Chart(ctx context.Context, release Version) (*oci.Chart, error) {
	artifact, err := a.artifact(ctx, release)
	if err != nil || !artifact.IsChart() {
		return nil, err
	}

	read, err := a.access.Client.ReadChart(ctx, artifact)
	if err != nil {
		return nil, contentError(err)
	}

	if got := "v" + strings.TrimPrefix(read.Metadata.Version, "v"); got != release.Name {
		return nil, &bundle.InvalidError{
			File:   artifact.Reference.String(),
			Reason: fmt.Sprintf("is the chart of version %s, not %s", got, release.Name),
		}
	}

	return read, nil
}

// Moved says where a release's tag leads now, when that is neither the manifest nor the chart in
// use.
func (a *Artifact) CheckTag(ctx context.Context, release Version, inUse Digests) (oci.Reference, error) {
	now, err := a.repository.CheckTag(ctx, release, inUse)
	if err != nil || now.Digest == "" {
		return now, err
	}

	artifact, err := a.access.Client.Artifact(ctx, now)
	switch {
	case oci.IsReason(err, oci.Invalid): // something else altogether
		return now, nil
	case err != nil:
		return oci.Reference{}, err
	case inUse.Chart != "" && artifact.HasLayer(inUse.Chart):
		return oci.Reference{}, nil
	}

	return now, nil
}

// Fetch reads the files of a release.
func (a *Artifact) Fetch(ctx context.Context, release Version) (*bundle.Bundle, error) {
	artifact, err := a.artifact(ctx, release)
	if err != nil {
		return nil, err
	}

	files := layersByTitle(artifact)

	b := &bundle.Bundle{Provider: a.provider, Version: release.Name, Source: artifact.Reference.String()}
	if b.Metadata, err = a.readFirst(ctx, artifact, files, a.metadataNames(release)); err != nil {
		return nil, err
	}

	if b.Components, err = a.readFirst(ctx, artifact, files, a.componentsNames(release)); err != nil {
		return nil, err
	}

	left := int64(maxTotalSize)

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !templateName.MatchString(name) {
			continue
		}

		if left -= files[name].Size; left < 0 {
			return nil, &bundle.InvalidError{
				File:   artifact.Reference.String(),
				Reason: fmt.Sprintf("its cluster templates are larger than %d MiB together", maxTotalSize>>20),
			}
		}

		data, err := a.access.Client.Blob(ctx, artifact.Reference, files[name], maxFileSize)
		if err != nil {
			return nil, contentError(err)
		}

		b.Templates = append(b.Templates, bundle.File{Name: name, Data: data})
	}

	return b, nil
}

// Metadata reads the metadata.yaml of a release and nothing else.
func (a *Artifact) Metadata(ctx context.Context, release Version) ([]byte, error) {
	artifact, err := a.artifact(ctx, release)
	if err != nil {
		return nil, err
	}

	if artifact.IsChart() {
		c, err := a.access.Client.ReadChart(ctx, artifact)
		if err != nil {
			return nil, contentError(err)
		}

		return c.File(bundle.MetadataFile), nil
	}

	return a.readFirst(ctx, artifact, layersByTitle(artifact), a.metadataNames(release))
}

// artifact reads the manifest of a release that is trusted.
func (a *Artifact) artifact(ctx context.Context, release Version) (*oci.Artifact, error) {
	pinned, err := a.resolve(ctx, release)
	if err != nil {
		return nil, err
	}

	artifact, err := a.access.Client.Artifact(ctx, pinned)

	return artifact, contentError(err)
}

// templateName is a file name that a chart may have at its root.
var templateName = regexp.MustCompile(`^(cluster-template|clusterclass-)[A-Za-z0-9._-]*\.yaml$`)

// titled are the layers that have names.
func layersByTitle(artifact *oci.Artifact) map[string]ocispec.Descriptor {
	files := map[string]ocispec.Descriptor{}

	for _, layer := range artifact.Manifest.Layers {
		if title := layer.Annotations[ocispec.AnnotationTitle]; title != "" {
			files[title] = layer
		}
	}

	return files
}

// metadataNames are what the metadata may be called, the first wins; with provider and version in
// the names, several providers share an artifact.
func (a *Artifact) metadataNames(release Version) []string {
	return append(a.qualifiedNames(release, bundle.MetadataFile), bundle.MetadataFile)
}

// componentsNames are what the components may be called.
func (a *Artifact) componentsNames(release Version) []string {
	t := v1alpha2.ProviderType(a.provider.Type)

	return append(
		a.qualifiedNames(release, bundle.ComponentsFile),
		t.Name()+"-"+bundle.ComponentsFile,
		t.ComponentsFile(),
		bundle.ComponentsFile,
	)
}

// qualified is a file's name for this very provider and version, as cluster-api-operator has it.
func (a *Artifact) qualifiedNames(release Version, file string) []string {
	return []string{
		fmt.Sprintf("%s-%s-%s-%s", v1alpha2.ProviderType(a.provider.Type).Name(), a.provider.Name, release.Name, file),
	}
}

// first reads the first of these files that is there.
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

		data, err := a.access.Client.Blob(ctx, artifact.Reference, layer, maxFileSize)

		return data, contentError(err)
	}

	there := "no layer with a title annotation"

	if len(files) > 0 {
		all := slices.Sorted(maps.Keys(files))
		there = "only " + strings.Join(all[:min(len(all), 10)], ", ")
	}

	return nil, &bundle.InvalidError{
		File: artifact.Reference.String(),
		Reason: fmt.Sprintf(
			"has none of %s, but %s; push the files of a release, as oras push does",
			strings.Join(names, ", "),
			there,
		),
	}
}

// asInvalid makes a registry's error about content that will not get better the bundle's.
func contentError(err error) error {
	var e *oci.Error
	if errors.As(err, &e) && e.Reason == oci.Invalid {
		return &bundle.InvalidError{File: e.Reference, Reason: e.Message, Err: err}
	}

	return err
}
