package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// NewChart returns the item of a chart in memory.
func NewChart(ctx context.Context, c *chart.Chart) (*Item, error) {
	storage := memory.New()

	manifest, err := oci.PackChart(ctx, storage, c)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Filename(), err)
	}

	return newItem(ctx, chartReference(c.Metadata.Name, oci.ChartTag(c.Metadata.Version)), manifest, storage)
}

// PublishedChart returns the items of a chart in a registry and of its signatures. The chart keeps
// its name and tag.
func PublishedChart(ctx context.Context, client *oci.Client, ref oci.Reference) ([]*Item, error) {
	root, err := client.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}

	mirrored := chartReference(path.Base(ref.Repository), ref.Tag)

	item, err := newItem(ctx, mirrored, root, client.Repository(ref))
	if err != nil {
		return nil, oci.WrapError("read", ref.String(), err)
	}

	return withAttached(ctx, client, ref, mirrored, item)
}

// chartReference returns the reference of a chart in a mirror.
func chartReference(name, tag string) oci.Reference {
	return oci.Reference{Repository: path.Join(chartsFolder, name), Tag: tag}
}

// Images returns the items of container images and of their signatures, by the names that containers
// use.
//
// Platforms such as linux/amd64 restrict what is copied of images for several platforms; empty means
// all. An image that is restricted loses its signatures, which are for the complete image. An image
// that is named by its digest is always complete: without some of its platforms it would have another
// digest.
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

// imageItems returns the items of an image and of its signatures.
func imageItems(ctx context.Context, client *oci.Client, ref oci.Reference, platforms []string) ([]*Item, error) {
	complete, err := client.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}

	root := complete
	note := ""

	var storage content.ReadOnlyStorage = client.Repository(ref)

	if len(platforms) > 0 && oci.IsIndex(complete) {
		if ref.Digest != "" {
			note = "all platforms: it is named by its digest"
		} else {
			root, storage, err = selectPlatforms(ctx, storage, complete, platforms)
			if err != nil {
				return nil, fmt.Errorf("image %s: %w", ref.Name(), err)
			}
		}
	}

	item, err := newItem(ctx, ref, root, storage)
	if err != nil {
		return nil, oci.WrapError("read", ref.String(), err)
	}

	item.Note = note
	if root.Digest != complete.Digest {
		return []*Item{item}, nil
	}

	return withAttached(ctx, client, ref, ref, item)
}

// selectPlatforms returns an index with only some platforms of another one, and a storage that has
// it.
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
		return root, nil, fmt.Errorf("is for %s and not for %s", strings.Join(available, ", "), strings.Join(platforms, ", "))
	}

	index.Manifests = selected

	if data, err = json.Marshal(index); err != nil {
		return root, nil, err
	}

	desc := content.NewDescriptorFromBytes(root.MediaType, data)

	return desc, &manifestOverlay{ReadOnlyStorage: source, desc: desc, data: data}, nil
}

// platformName returns the usual notation of a platform, such as linux/arm64 or linux/arm/v7.
func platformName(d ocispec.Descriptor) string {
	if d.Platform == nil {
		return "unknown"
	}

	return strings.TrimSuffix(d.Platform.OS+"/"+d.Platform.Architecture+"/"+d.Platform.Variant, "/")
}
