package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
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

// Artifact reads a manifest. An index is an error of reason Invalid; use Index for it.
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

// HasLayer reports whether a blob is a layer of the artifact.
func (a *Artifact) HasLayer(blob digest.Digest) bool {
	return slices.ContainsFunc(a.Manifest.Layers, func(layer ocispec.Descriptor) bool { return layer.Digest == blob })
}

// Index reads an index and returns the manifests that it lists. Anything else is an error of reason
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

// Layer is a blob or manifest to push.
type Layer struct {
	Descriptor ocispec.Descriptor
	Data       []byte
}

// NewLayer returns a layer with the digest and size of its data.
func NewLayer(mediaType string, data []byte) Layer {
	return Layer{Descriptor: content.NewDescriptorFromBytes(mediaType, data), Data: data}
}

// Pack returns the parts of an artifact in the order in which Push writes them: the config, the
// layers and, last, the manifest. The same arguments always give the same manifest.
func Pack(artifactType string, config Layer, layers []Layer, annotations map[string]string) ([]Layer, error) {
	manifest := ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType,
		Config:       config.Descriptor,
		Annotations:  annotations,
	}
	for _, l := range layers {
		manifest.Layers = append(manifest.Layers, l.Descriptor)
	}

	data, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}

	return append(append([]Layer{config}, layers...), NewLayer(manifest.MediaType, data)), nil
}

// Push writes the result of Pack to the reference's tag and returns the manifest's descriptor. An
// existing tag is never moved: it is left alone if it has the same manifest, and an error of reason
// Conflict otherwise.
func (c *Client) Push(ctx context.Context, ref Reference, artifact []Layer) (ocispec.Descriptor, error) {
	const action = "push"

	blobs := artifact[:len(artifact)-1]
	manifest := artifact[len(artifact)-1]

	existing, err := c.Resolve(ctx, ref)
	switch {
	case err == nil && existing.Digest == manifest.Descriptor.Digest:
		return existing, nil
	case err == nil:
		return existing, NewConflictError(action, ref, existing, manifest.Descriptor)
	case !IsReason(err, NotFound):
		return ocispec.Descriptor{}, err
	}

	for _, l := range blobs {
		if err := c.pushBlob(ctx, ref, l); err != nil {
			return ocispec.Descriptor{}, wrapError(action, ref, err)
		}
	}

	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	err = c.Repository(ref).PushReference(ctx, manifest.Descriptor, bytes.NewReader(manifest.Data), ref.Tag)

	return manifest.Descriptor, wrapError(action, ref, err)
}

// pushBlob pushes a blob unless the repository has it.
func (c *Client) pushBlob(ctx context.Context, ref Reference, l Layer) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	repository := c.Repository(ref)
	if exists, err := repository.Exists(ctx, l.Descriptor); err == nil && exists {
		return nil
	}

	err := repository.Push(ctx, l.Descriptor, bytes.NewReader(l.Data))
	if errors.Is(err, errdef.ErrAlreadyExists) {
		return nil
	}

	return err
}
