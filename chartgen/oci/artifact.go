package oci

import (
	"context"
	"encoding/json"

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

// IsIndex reports whether a descriptor is that of an index, which lists one manifest a platform.
func IsIndex(desc ocispec.Descriptor) bool {
	return desc.MediaType == ocispec.MediaTypeImageIndex || desc.MediaType == mediaTypeDockerList
}

// Artifact reads a manifest. An index is an error of kind Invalid; use Index for it.
func (c *Client) Artifact(ctx context.Context, ref Reference) (*Artifact, error) {
	desc, data, err := c.Manifest(ctx, ref)
	if err != nil {
		return nil, err
	}

	if desc.MediaType != ocispec.MediaTypeImageManifest && desc.MediaType != mediaTypeDockerManifest {
		return nil, newInvalidError("pull", ref, "an OCI manifest was expected, not %s", desc.MediaType)
	}

	a := &Artifact{Reference: ref.WithDigest(desc.Digest), Descriptor: desc}
	if err := json.Unmarshal(data, &a.Manifest); err != nil {
		return nil, newInvalidError("pull", ref, "its manifest is not JSON: %v", err)
	}

	return a, nil
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
