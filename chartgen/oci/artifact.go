package oci

import (
	"context"
	"encoding/json"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's media types, which registries still return for older images.
const (
	mediaTypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	mediaTypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Artifact is a manifest in a registry: an image for one platform, a chart, or any other artifact.
type Artifact struct {
	// Reference is pinned to the digest of the manifest.
	Reference Reference
	// Descriptor describes the manifest.
	Descriptor ocispec.Descriptor
	// Manifest is its content.
	Manifest ocispec.Manifest
}

// IsIndex reports whether a descriptor refers to an index, which lists one manifest for each platform.
func IsIndex(desc ocispec.Descriptor) bool {
	return desc.MediaType == ocispec.MediaTypeImageIndex || desc.MediaType == mediaTypeDockerList
}

// maxIndexed is the maximum number of manifests in an index that are read to find a chart.
const maxIndexed = 16

// Artifact reads a manifest. An index with one chart in it, perhaps beside attestations, is read as the chart, as Helm
// does. Any other index is an error of kind Invalid; use Index for it.
func (c *Client) Artifact(ctx context.Context, ref Reference) (*Artifact, error) {
	desc, data, err := c.Manifest(ctx, ref)
	if err != nil {
		return nil, err
	}

	if IsIndex(desc) {
		return c.indexedChart(ctx, ref, data)
	}

	return newArtifact(ref, desc, data)
}

// newArtifact returns the artifact of a manifest that was read. Anything but the manifest of an image is an error of
// kind Invalid.
func newArtifact(ref Reference, desc ocispec.Descriptor, data []byte) (*Artifact, error) {
	if desc.MediaType != ocispec.MediaTypeImageManifest && desc.MediaType != mediaTypeDockerManifest {
		return nil, newInvalidError("pull", ref, "an OCI manifest was expected, not %s", desc.MediaType)
	}

	a := &Artifact{Reference: ref.WithDigest(desc.Digest), Descriptor: desc}
	if err := json.Unmarshal(data, &a.Manifest); err != nil {
		return nil, newInvalidError("pull", ref, "its manifest is not JSON: %v", err)
	}

	return a, nil
}

// indexedChart returns the only chart of an index. Helm takes any of several, each time another one.
func (c *Client) indexedChart(ctx context.Context, ref Reference, data []byte) (*Artifact, error) {
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, newInvalidError("pull", ref, "its index is not JSON: %v", err)
	}

	// Charts are for no platform, unlike images.
	manifests := slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		return d.Platform != nil || IsIndex(d)
	})

	var charts []*Artifact

	for _, manifest := range manifests[:min(len(manifests), maxIndexed)] {
		desc, data, err := c.Manifest(ctx, ref.WithDigest(manifest.Digest))
		if err != nil {
			return nil, err
		}

		found, err := newArtifact(ref, desc, data)
		if err != nil {
			return nil, err
		}

		if found.IsChart() {
			charts = append(charts, found)
		}
	}

	switch {
	case len(charts) == 0:
		return nil, newInvalidError("pull", ref, "an OCI manifest was expected, not an index without a chart")
	case len(charts) > 1 || len(manifests) > maxIndexed:
		return nil, newInvalidError("pull", ref, "its index has several charts, or more than %d manifests; name a chart "+
			"by its digest, such as @%s", maxIndexed, charts[0].Descriptor.Digest)
	}

	return charts[0], nil
}

// Index reads an index and returns the manifests that it lists. Anything else is an error of kind
// Invalid.
func (c *Client) Index(ctx context.Context, ref Reference) ([]ocispec.Descriptor, error) {
	desc, data, err := c.Manifest(ctx, ref)
	if err != nil {
		return nil, err
	}

	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil || !IsIndex(desc) {
		return nil, newInvalidError("pull", ref, "an OCI index was expected, not %s", desc.MediaType)
	}

	return index.Manifests, nil
}
