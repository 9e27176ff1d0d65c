package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// Helm's media types: with these, and the chart's version as the tag, helm, Flux and Argo CD read
// what Capstan pushes, and Capstan reads what they do.
const (
	mediaTypeChartConfig = "application/vnd.cncf.helm.config.v1+json"
	mediaTypeChart       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// maxChart bounds a chart's archive: twenty times a large provider's.
const maxChartSize = 16 << 20

// created is when every artifact was made: the same chart is the same manifest on every machine.
const creationTime = "1970-01-01T00:00:00Z"

// Chart is a chart in a registry.
type Chart struct {
	*chart.Chart
	// Reference is pinned to the digest of the manifest.
	Reference Reference
	// Archive is the chart as the registry holds it, and Digest its digest.
	Archive []byte
	Digest  string
}

// ChartTag is a chart version as a tag: + is none of a tag's characters, so it is _ there.
func ChartTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// ChartVersion is the version that a tag stands for.
func ChartVersion(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// IsChart reports whether an artifact is a Helm chart.
func (a *Artifact) IsChart() bool { return a.Manifest.Config.MediaType == mediaTypeChartConfig }

// PackChart makes the artifact of a chart, see Pack. The chart's annotations, which say what it was
// made from and by which version, become the manifest's.
func PackChart(ch *chart.Chart) ([]Layer, error) {
	archive, err := ch.Archive()
	if err != nil {
		return nil, err
	}

	if len(archive) > maxChartSize {
		return nil, fmt.Errorf("chart %s is %d MiB; %d MiB is the limit", ch.Filename(), len(archive)>>20, maxChartSize>>20)
	}

	config, err := chartConfig(ch)
	if err != nil {
		return nil, err
	}

	annotations := map[string]string{
		ocispec.AnnotationTitle:       ch.Metadata.Name,
		ocispec.AnnotationVersion:     ch.Metadata.Version,
		ocispec.AnnotationDescription: ch.Metadata.Description,
		ocispec.AnnotationCreated:     creationTime,
	}
	maps.Copy(annotations, ch.Metadata.Annotations)
	maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })

	return Pack("", NewLayer(mediaTypeChartConfig, config), []Layer{NewLayer(mediaTypeChart, archive)}, annotations)
}

// PushChart puts a chart under the reference's tag, as Push does.
func (c *Client) PushChart(ctx context.Context, ref Reference, ch *chart.Chart) (*Chart, error) {
	artifact, err := PackChart(ch)
	if err != nil {
		return nil, err
	}

	desc, err := c.Push(ctx, ref, artifact)
	if err != nil {
		return nil, err
	}

	archive := artifact[1]

	return &Chart{
		Chart:     ch,
		Reference: ref.WithDigest(desc.Digest),
		Archive:   archive.Data,
		Digest:    archive.Descriptor.Digest.String(),
	}, nil
}

// chartConfig is Chart.yaml as JSON, whole: also of a chart with fields that Capstan does not know.
func chartConfig(ch *chart.Chart) ([]byte, error) {
	var metadata map[string]any
	if err := yaml.Unmarshal(ch.File(chart.MetadataFile), &metadata); err != nil {
		return nil, fmt.Errorf("chart %s: %s: %w", ch.Metadata.Name, chart.MetadataFile, err)
	}

	return json.Marshal(metadata)
}

// PullChart reads a chart. The error's reason is Invalid when the reference leads to something
// else.
func (c *Client) PullChart(ctx context.Context, ref Reference) (*Chart, error) {
	a, err := c.Artifact(ctx, ref)
	if err != nil {
		return nil, err
	}

	return c.ReadChart(ctx, a)
}

// ReadChart reads the chart that an artifact is.
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

// kind names what an artifact is, for a message.
func (a *Artifact) describeType() string {
	for _, kind := range []string{a.Manifest.ArtifactType, a.Manifest.Config.MediaType} {
		if kind != "" && kind != ocispec.MediaTypeEmptyJSON {
			return kind
		}
	}

	return "an artifact without a type"
}
