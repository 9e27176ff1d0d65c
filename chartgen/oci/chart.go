package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// Helm's media types. With these and the chart's version as the tag, charts are interchangeable
// between Capstan, Helm, Flux and Argo CD.
const (
	mediaTypeChartConfig = "application/vnd.cncf.helm.config.v1+json"
	mediaTypeChart       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// maxChartSize is the maximum size of a chart's archive in bytes: twenty times a large provider's.
const maxChartSize = 16 << 20

// creationTime is the creation time of every artifact, so that the same chart gives the same
// manifest at any time.
const creationTime = "1970-01-01T00:00:00Z"

// Chart is a chart in a registry.
type Chart struct {
	*chart.Chart
	// Reference is pinned to the digest of the manifest.
	Reference Reference
	// Archive is the .tgz as the registry has it.
	Archive []byte
	// Digest of the archive, "sha256:…".
	Digest string
}

// ChartTag returns the tag of a chart version. Tags may not contain "+", so Helm writes "_" instead.
func ChartTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// ChartVersion returns the chart version of a tag; it is the inverse of ChartTag.
func ChartVersion(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// IsChart reports whether an artifact is a Helm chart.
func (a *Artifact) IsChart() bool { return a.Manifest.Config.MediaType == mediaTypeChartConfig }

// PackChart writes a chart to a storage and returns its manifest, which has no tag yet. The same chart always gives
// the same manifest. It gets the annotations of the chart, among them the ID of the content and the version of
// chartgen that it was generated with.
func PackChart(ctx context.Context, to content.Pusher, ch *chart.Chart) (ocispec.Descriptor, error) {
	archive, err := ch.Archive()
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	if len(archive) > maxChartSize {
		return ocispec.Descriptor{}, fmt.Errorf("chart %s is %d MiB; %d MiB is the limit", ch.Filename(), len(archive)>>20,
			maxChartSize>>20)
	}

	config, err := chartConfig(ch)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	configBlob, err := oras.PushBytes(ctx, to, mediaTypeChartConfig, config)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	archiveBlob, err := oras.PushBytes(ctx, to, mediaTypeChart, archive)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	annotations := map[string]string{
		ocispec.AnnotationTitle:       ch.Metadata.Name,
		ocispec.AnnotationVersion:     ch.Metadata.Version,
		ocispec.AnnotationDescription: ch.Metadata.Description,
		ocispec.AnnotationCreated:     creationTime,
	}
	maps.Copy(annotations, ch.Metadata.Annotations)
	maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })

	return oras.PackManifest(ctx, to, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		ConfigDescriptor:    &configBlob,
		Layers:              []ocispec.Descriptor{archiveBlob},
		ManifestAnnotations: annotations,
	})
}

// chartConfig returns Chart.yaml as JSON, including fields that Capstan does not know.
func chartConfig(ch *chart.Chart) ([]byte, error) {
	var metadata map[string]any
	if err := yaml.Unmarshal(ch.File(chart.MetadataFile), &metadata); err != nil {
		return nil, fmt.Errorf("chart %s: %s: %w", ch.Metadata.Name, chart.MetadataFile, err)
	}

	return json.Marshal(metadata)
}

// PullChart reads a chart. If the reference resolves to anything else, the error's kind is
// Invalid.
func (c *Client) PullChart(ctx context.Context, ref Reference) (*Chart, error) {
	a, err := c.Artifact(ctx, ref)
	if err != nil {
		return nil, err
	}

	return c.ReadChart(ctx, a)
}

// ReadChart reads the chart of an artifact. Any other artifact is an error of kind Invalid.
func (c *Client) ReadChart(ctx context.Context, a *Artifact) (*Chart, error) {
	const action = "pull"
	if !a.IsChart() {
		return nil, newInvalidError(action, a.Reference, "not a Helm chart but %s", a.describeType())
	}

	for _, layer := range a.Manifest.Layers {
		if layer.MediaType != mediaTypeChart {
			continue // a provenance file
		}

		archive, err := c.Blob(ctx, a.Reference, layer, maxChartSize)
		if err != nil {
			return nil, err
		}

		ch, err := chart.Read(bytes.NewReader(archive))
		if err != nil {
			return nil, newInvalidError(action, a.Reference, "%v", err)
		}

		return &Chart{Chart: ch, Reference: a.Reference, Archive: archive, Digest: layer.Digest.String()}, nil
	}

	return nil, newInvalidError(action, a.Reference, "a Helm chart without an archive; push it again")
}

// describeType returns the type of an artifact for a message.
func (a *Artifact) describeType() string {
	for _, kind := range []string{a.Manifest.ArtifactType, a.Manifest.Config.MediaType} {
		if kind != "" && kind != ocispec.MediaTypeEmptyJSON {
			return kind
		}
	}

	return "an artifact without a type"
}
