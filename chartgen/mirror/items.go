package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// NewChart returns the item of a chart in memory.
func NewChart(ctx context.Context, c *chart.Chart) (*Item, error) {
	storage := memory.New()

	root, err := oci.PackChart(ctx, storage, c)
	if err != nil {
		return nil, err
	}

	root = ocispec.Descriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}

	return newItem(ctx, chartReference(c.Metadata.Name, oci.ChartTag(c.Metadata.Version)), root, storage)
}

// PublishedChart returns the items of a chart in a registry and of its signatures. The chart keeps
// its name and tag.
func PublishedChart(ctx context.Context, client *oci.Client, ref oci.Reference) ([]*Item, error) {
	root, err := client.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}

	return publishedItems(ctx, client, ref, chartReference(path.Base(ref.Repository), ref.Tag), root)
}

// chartReference returns the reference of a chart in a mirror.
func chartReference(name, tag string) oci.Reference {
	return oci.Reference{Repository: path.Join(chartsFolder, name), Tag: tag}
}

// publishedItems returns the items of a manifest in a registry and, if cosign has stored one under a tag, of its
// signature. Mirrored is the reference of the manifest in a mirror.
func publishedItems(
	ctx context.Context,
	client *oci.Client,
	ref, mirrored oci.Reference,
	root ocispec.Descriptor,
) ([]*Item, error) {
	item, err := newItem(ctx, mirrored, root, client.Repository(ref))
	if err != nil {
		return nil, oci.WrapError("read", ref.String(), err)
	}

	tag := oci.SignatureTag(root.Digest)

	signed, err := client.Resolve(ctx, ref.WithTag(tag))
	if transport.Is(err, transport.NotFound) {
		return []*Item{item}, nil
	}

	if err != nil {
		return []*Item{item}, item.withoutSignatures(err)
	}

	signature, err := newItem(ctx, mirrored.WithTag(tag), signed, client.Repository(ref))
	if err != nil {
		return nil, oci.WrapError("read", ref.WithTag(tag).String(), err)
	}

	signature.Note = "signature of " + item.Name

	return []*Item{item, signature}, nil
}

// Images returns the items of container images and of their signatures, by the names that containers
// use, or with http:// for a registry without TLS.
//
// Platforms such as linux/amd64 restrict what is copied of images for several platforms; empty means
// all. An image that is restricted loses its signatures, which are for the complete image. An image
// that is named by its digest is always complete: without some of its platforms it would have another
// digest.
//
// Parallel is the number of images that are looked up at the same time, at least 1.
func Images(ctx context.Context, client *oci.Client, names, platforms []string, parallel int) ([]*Item, error) {
	found := make([][]*Item, len(names))

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, parallel))

	for n, name := range names {
		group.Go(func() error {
			ref, err := parseImage(name)
			if err != nil {
				return err
			}

			found[n], err = imageItems(ctx, client, ref, platforms)

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	return slices.Concat(found...), nil
}

// parseImage reads the name of an image. That of containers cannot say that a registry has no TLS.
func parseImage(name string) (oci.Reference, error) {
	if !strings.HasPrefix(name, "http://") {
		return oci.ParseImage(name)
	}

	ref, err := oci.Parse(name)
	if err == nil && ref.Identifier() == "" {
		ref = ref.WithTag("latest")
	}

	return ref, err
}

// imageItems returns the items of an image and of its signatures.
func imageItems(ctx context.Context, client *oci.Client, ref oci.Reference, platforms []string) ([]*Item, error) {
	root, err := client.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}

	restricted := len(platforms) > 0 && oci.IsIndex(root)
	if !restricted || ref.Digest != "" {
		items, err := publishedItems(ctx, client, ref, ref, root)
		if err == nil && restricted {
			items[0].note("all platforms: it is named by its digest")
		}

		return items, err
	}

	index, err := selectPlatforms(ctx, client.Repository(ref), root, platforms)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref.Name(), err)
	}

	item, err := newItem(ctx, ref, index.desc, index)

	return []*Item{item}, oci.WrapError("read", ref.String(), err)
}

// partialIndex is a storage with an index that has only some of the platforms of the index in another storage.
type partialIndex struct {
	content.ReadOnlyStorage
	desc ocispec.Descriptor
	data []byte
}

// selectPlatforms returns an index with only some platforms of another one.
func selectPlatforms(
	ctx context.Context,
	source content.ReadOnlyStorage,
	root ocispec.Descriptor,
	platforms []string,
) (*partialIndex, error) {
	ctx, cancel := context.WithTimeout(ctx, maxLookup)
	defer cancel()

	data, err := readManifest(ctx, source, root)
	if err != nil {
		return nil, err
	}

	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("its index is not JSON: %w", err)
	}

	var (
		available []string
		selected  []ocispec.Descriptor
	)

	for _, manifest := range index.Manifests {
		name := platformName(manifest)
		available = append(available, name)

		if slices.Contains(platforms, name) {
			selected = append(selected, manifest)
		}
	}

	if len(selected) == 0 {
		return nil, fmt.Errorf("is for %s and not for %s", strings.Join(available, ", "), strings.Join(platforms, ", "))
	}

	index.Manifests = selected

	if data, err = json.Marshal(index); err != nil {
		return nil, err
	}

	return &partialIndex{source, content.NewDescriptorFromBytes(root.MediaType, data), data}, nil
}

// platformName returns the usual notation of a platform, such as linux/arm64 or linux/arm/v7.
func platformName(d ocispec.Descriptor) string {
	if d.Platform == nil {
		return "unknown"
	}

	return strings.TrimSuffix(d.Platform.OS+"/"+d.Platform.Architecture+"/"+d.Platform.Variant, "/")
}

// Fetch returns the index, or content of the other storage.
func (p *partialIndex) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if desc.Digest == p.desc.Digest {
		return io.NopCloser(bytes.NewReader(p.data)), nil
	}

	return p.ReadOnlyStorage.Fetch(ctx, desc)
}

// Predecessors returns nothing: the index is not published, so nothing refers to it.
func (p *partialIndex) Predecessors(context.Context, ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return nil, nil
}
