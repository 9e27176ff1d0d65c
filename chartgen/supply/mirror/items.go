package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// NewChart makes the item of a chart in memory.
func NewChart(ctx context.Context, c *chart.Chart) (*Item, error) {
	artifact, err := oci.PackChart(c)
	if err != nil {
		return nil, err
	}

	storage := memory.New()
	for _, l := range artifact {
		if err := storage.Push(ctx, l.Descriptor, bytes.NewReader(l.Data)); err != nil {
			return nil, fmt.Errorf("chart %s: %w", c.Filename(), err)
		}
	}

	return newItem(
		ctx,
		chartReference(c.Metadata.Name, oci.ChartTag(c.Metadata.Version)),
		artifact[len(artifact)-1].Descriptor,
		storage,
	)
}

func chartReference(name, tag string) oci.Reference {
	return oci.Reference{Repository: chartsFolder + "/" + name, Tag: tag}
}

// Images makes the items of images in their registries, by the names that containers have them by,
// and of their signatures. Of an image for many platforms only the given ones are taken, such as
// linux/amd64, which leaves the signatures of the whole behind; none means all. An image that is
// named by its digest is always taken whole, or the digest would be another.
func Images(ctx context.Context, client *oci.Client, names, platforms []string) ([]*Item, error) {
	var items []*Item

	for _, name := range names {
		ref, err := oci.ParseImage(name)
		if err != nil {
			return nil, err
		}

		found, err := imageItems(ctx, client, ref, platforms)
		if err != nil {
			return nil, err
		}

		items = append(items, found...)
	}

	return items, nil
}

// Artifact makes the items of a chart that is in a registry, by the name and version that it has
// there, and of its signatures.
func PublishedChart(ctx context.Context, client *oci.Client, ref oci.Reference) ([]*Item, error) {
	root, err := client.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}

	named := chartReference(ref.Repository[strings.LastIndexByte(ref.Repository, '/')+1:], ref.Tag)

	item, err := newItem(ctx, named, root, client.Repository(ref))
	if err != nil {
		return nil, oci.WrapError("read", ref.String(), err)
	}

	return withAttached(ctx, client, ref, named, item)
}

// imageItems are an image and its signatures.
func imageItems(ctx context.Context, client *oci.Client, ref oci.Reference, platforms []string) ([]*Item, error) {
	whole, err := client.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}

	root := whole

	storage, note := content.ReadOnlyStorage(client.Repository(ref)), ""
	switch {
	case len(platforms) == 0 || !oci.IsIndex(root):
	case ref.Digest != "":
		note = "all platforms: it is named by its digest"
	default:
		if root, storage, err = selectPlatforms(ctx, storage, root, platforms); err != nil {
			return nil, fmt.Errorf("image %s: %w", ref.Name(), err)
		}
	}

	item, err := newItem(ctx, ref, root, storage)
	if err != nil {
		return nil, oci.WrapError("read", ref.String(), err)
	}

	item.Note = note
	if root.Digest != whole.Digest {
		return []*Item{item}, nil
	}

	return withAttached(ctx, client, ref, ref, item)
}

// newItem makes an item of a reference; in a mirror it has the reference's path and tag.
func newItem(
	ctx context.Context,
	ref oci.Reference,
	root ocispec.Descriptor,
	source content.ReadOnlyStorage,
) (*Item, error) {
	name := strings.TrimPrefix(ref.Name(), "/") // a chart's has no registry

	item := &Item{Name: name, Repository: ref.Repository, Tag: ref.Tag, Root: root, source: source}
	if ref.Tag == "" { // nothing but its digest names what is attached
		var err error
		if item.subject, err = subjectOf(ctx, source, root); err != nil {
			return nil, err
		}
	}

	return item, item.walk(ctx)
}

// choose makes an index of some platforms alone.
func selectPlatforms(
	ctx context.Context,
	source content.ReadOnlyStorage,
	root ocispec.Descriptor,
	platforms []string,
) (ocispec.Descriptor, content.ReadOnlyStorage, error) {
	data, err := content.FetchAll(ctx, source, root)
	if err != nil {
		return root, nil, err
	}

	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return root, nil, fmt.Errorf("its index is not JSON: %w", err)
	}

	var there []string

	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		there = append(there, platformName(d))
		return !slices.Contains(platforms, platformName(d))
	})
	if len(index.Manifests) == 0 {
		return root, nil, fmt.Errorf("is for %s and not for %s", strings.Join(there, ", "), strings.Join(platforms, ", "))
	}

	if data, err = json.Marshal(index); err != nil {
		return root, nil, err
	}

	chosen := content.NewDescriptorFromBytes(root.MediaType, data)

	return chosen, &overlay{ReadOnlyStorage: source, desc: chosen, data: data}, nil
}

// platformName is a platform as people write it, such as linux/arm64 or linux/arm/v7.
func platformName(d ocispec.Descriptor) string {
	if d.Platform == nil {
		return "unknown"
	}

	return strings.TrimSuffix(d.Platform.OS+"/"+d.Platform.Architecture+"/"+d.Platform.Variant, "/")
}

// overlay is a storage with one more manifest.
type overlay struct {
	content.ReadOnlyStorage
	desc ocispec.Descriptor
	data []byte
}

func (o *overlay) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if desc.Digest == o.desc.Digest {
		return true, nil
	}

	return o.ReadOnlyStorage.Exists(ctx, desc)
}

func (o *overlay) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if desc.Digest == o.desc.Digest {
		return io.NopCloser(bytes.NewReader(o.data)), nil
	}

	return o.ReadOnlyStorage.Fetch(ctx, desc)
}
