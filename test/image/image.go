// Package image pushes small container images to a registry, for tests.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
)

// Entry is a file, folder or link in a layer.
type Entry struct {
	Name    string
	Content string
	// Type is tar.TypeReg if it is 0.
	Type byte
	Link string
}

// Layer returns the entries as a layer of an image.
func Layer(entries ...Entry) []byte {
	var out bytes.Buffer

	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)

	for _, e := range entries {
		if e.Type == 0 {
			e.Type = tar.TypeReg
		}

		must(
			w.WriteHeader(
				&tar.Header{Name: e.Name, Typeflag: e.Type, Linkname: e.Link, Size: int64(len(e.Content)), Mode: 0o644},
			),
		)
		_, err := w.Write([]byte(e.Content))
		must(err)
	}

	must(w.Close())
	must(zip.Close())

	return out.Bytes()
}

// Random returns a layer of random bytes. The same seed gives the same bytes.
func Random(size int, seed uint64) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	data := make([]byte, size)
	_, _ = random.Read(data) // never fails

	return data
}

// Push pushes an image with these layers, oldest first: one image for each platform, such as
// linux/amd64, and an index of them under the reference's tag. Without platforms, it pushes a
// single manifest. It returns the digest that the tag points to.
func Push(
	ctx context.Context,
	c *oci.Client,
	ref oci.Reference,
	platforms []string,
	layers ...[]byte,
) (ocispec.Descriptor, error) {
	repository := c.Repository(ref)
	if len(platforms) == 0 {
		desc, data, err := manifest(ctx, repository, "linux/amd64", layers)
		if err != nil {
			return desc, err
		}

		return desc, repository.PushReference(ctx, desc, bytes.NewReader(data), ref.Tag)
	}

	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}

	for _, platform := range platforms {
		desc, data, err := manifest(ctx, repository, platform, layers)
		if err != nil {
			return desc, err
		}

		if err := repository.Push(ctx, desc, bytes.NewReader(data)); err != nil {
			return desc, err
		}

		system, architecture, _ := strings.Cut(platform, "/")
		desc.Platform = &ocispec.Platform{OS: system, Architecture: architecture}
		index.Manifests = append(index.Manifests, desc)
	}

	data, err := json.Marshal(index)
	must(err)

	desc := content.NewDescriptorFromBytes(index.MediaType, data)

	return desc, repository.PushReference(ctx, desc, bytes.NewReader(data), ref.Tag)
}

// Blob is a layer of an artifact that is not an image.
type Blob struct {
	Descriptor ocispec.Descriptor
	Data       []byte
}

// NewBlob returns a blob with the digest and size of its data.
func NewBlob(mediaType string, data []byte) Blob {
	return Blob{Descriptor: content.NewDescriptorFromBytes(mediaType, data), Data: data}
}

// PushArtifact pushes an artifact that is not an image under the reference's tag. The same arguments always give the
// same manifest.
func PushArtifact(
	ctx context.Context,
	c *oci.Client,
	ref oci.Reference,
	artifactType string,
	blobs ...Blob,
) (ocispec.Descriptor, error) {
	repository := c.Repository(ref)
	options := oras.PackManifestOptions{
		ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: "1970-01-01T00:00:00Z"},
	}

	if artifactType == "" {
		config, err := oras.PushBytes(ctx, repository, ocispec.MediaTypeImageConfig, []byte("{}"))
		if err != nil {
			return config, err
		}

		options.ConfigDescriptor = &config
	}

	for _, b := range blobs {
		if err := repository.Push(ctx, b.Descriptor, bytes.NewReader(b.Data)); err != nil {
			return b.Descriptor, err
		}

		options.Layers = append(options.Layers, b.Descriptor)
	}

	desc, err := oras.PackManifest(ctx, repository, oras.PackManifestVersion1_1, artifactType, options)
	if err != nil {
		return desc, err
	}

	return desc, repository.Tag(ctx, desc, ref.Tag)
}

// PushChart pushes a chart under the reference's tag, as `capstan mirror` does.
func PushChart(ctx context.Context, c *oci.Client, ref oci.Reference, ch *chart.Chart) (*oci.Chart, error) {
	archive, err := ch.Archive()
	if err != nil {
		return nil, err
	}

	repository := c.Repository(ref)

	desc, err := oci.PackChart(ctx, repository, ch)
	if err != nil {
		return nil, err
	}

	pushed := &oci.Chart{
		Chart: ch, Reference: ref.WithDigest(desc.Digest), Archive: archive, Digest: chart.Digest(archive),
	}

	return pushed, repository.Tag(ctx, desc, ref.Tag)
}

// manifest pushes config and layers, and returns the manifest. It adds one more layer that is
// different for each platform.
func manifest(
	ctx context.Context,
	target oras.Target,
	platform string,
	layers [][]byte,
) (ocispec.Descriptor, []byte, error) {
	system, architecture, _ := strings.Cut(platform, "/")
	config := fmt.Sprintf(`{"os":%q,"architecture":%q,"rootfs":{"type":"layers","diff_ids":[]}}`, system, architecture)
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}

	own := Layer(Entry{Name: "etc/platform", Content: platform})
	for _, l := range append([][]byte{[]byte(config), own}, layers...) {
		desc := content.NewDescriptorFromBytes(ocispec.MediaTypeImageLayerGzip, l)
		if m.Config.MediaType == "" {
			desc.MediaType = ocispec.MediaTypeImageConfig
			m.Config = desc
		} else {
			m.Layers = append(m.Layers, desc)
		}

		if exists, err := target.Exists(ctx, desc); err == nil && exists {
			continue
		}

		if err := target.Push(ctx, desc, bytes.NewReader(l)); err != nil {
			return desc, nil, err
		}
	}

	data, err := json.Marshal(m)
	must(err)

	return content.NewDescriptorFromBytes(m.MediaType, data), data, nil
}

// must panics on errors of operations that cannot fail in memory.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
