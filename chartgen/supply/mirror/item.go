package mirror

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// chartsFolder is the path of charts in a mirror.
const chartsFolder = "charts"

// Item is an image, a chart, or something attached to one, such as a signature.
type Item struct {
	// Name is the full name of an image where it comes from, or charts/<name>:<version>.
	Name string
	// Repository is the path in a mirror.
	Repository string
	// Tag in a mirror; empty if the item is referenced by its digest only.
	Tag string
	// Root is the manifest or index.
	Root ocispec.Descriptor
	// Size is the number of bytes of all manifests and blobs.
	Size int64
	// Note is a remark for users, for example about platforms; usually empty.
	Note string

	subject digest.Digest           // the manifest that this one refers to; empty if there is none
	source  content.ReadOnlyStorage // what the item is copied from
	blobs   []ocispec.Descriptor    // all manifests and blobs, Root last
}

// newItem returns the item of a reference, which gets the reference's path and tag in a mirror.
func newItem(
	ctx context.Context,
	ref oci.Reference,
	root ocispec.Descriptor,
	source content.ReadOnlyStorage,
) (*Item, error) {
	item := &Item{
		Name:       strings.TrimPrefix(ref.Name(), "/"), // references of charts have no registry
		Repository: ref.Repository,
		Tag:        ref.Tag,
		Root:       root,
		source:     source,
	}

	// attached items have no tag, except for cosign's signatures, which have no subject
	if ref.Tag == "" {
		var err error
		if item.subject, err = subjectOf(ctx, source, root); err != nil {
			return nil, err
		}
	}

	return item, item.walk(ctx)
}

// IsChart reports whether the item is a chart.
func (i *Item) IsChart() bool { return strings.HasPrefix(i.Name, chartsFolder+"/") }

// walk sets blobs and Size to everything that the root refers to, directly or indirectly.
func (i *Item) walk(ctx context.Context) error {
	i.blobs = nil
	i.Size = 0

	seen := map[digest.Digest]bool{}

	var visit func(desc ocispec.Descriptor) error

	visit = func(desc ocispec.Descriptor) error {
		if seen[desc.Digest] {
			return nil
		}

		seen[desc.Digest] = true

		successors, err := i.successors(ctx, i.source, desc)
		if err != nil {
			return err
		}

		for _, s := range successors {
			if err := visit(s); err != nil {
				return err
			}
		}

		i.blobs = append(i.blobs, desc)
		i.Size += desc.Size

		return nil
	}

	return visit(i.Root)
}

// TotalSize returns the number of bytes of all items. What several items share is counted once.
func TotalSize(items []*Item) int64 {
	total := int64(0)
	seen := map[digest.Digest]bool{}

	for _, item := range items {
		for _, b := range item.blobs {
			if !seen[b.Digest] {
				seen[b.Digest] = true
				total += b.Size
			}
		}
	}

	return total
}

// sortItems sorts items by name, charts first, and removes duplicates.
func sortItems(items []*Item) []*Item {
	rank := func(i *Item) int {
		if i.IsChart() {
			return 0
		}

		return 1
	}

	slices.SortFunc(items, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})

	return slices.CompactFunc(items, func(a, b *Item) bool { return a.Name == b.Name })
}
