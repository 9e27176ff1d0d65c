package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	ocilayout "oras.land/oras-go/v2/content/oci"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// OpenArchive returns the items of an archive, charts first. The file must stay in place while they
// are copied.
func OpenArchive(ctx context.Context, file string) ([]*Item, error) {
	layout, err := ocilayout.NewFromTar(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	if err != nil {
		return nil, fmt.Errorf("%s is not an OCI image layout in a tar archive: %w", file, err)
	}

	var names []string

	err = layout.Tags(ctx, "", func(page []string) error {
		names = append(names, page...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	var items []*Item

	for _, name := range names {
		item, err := openItem(ctx, layout, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}

		items = append(items, item)
	}

	return sortItems(items), nil
}

// openItem returns the item of a name in a layout.
func openItem(ctx context.Context, layout *ocilayout.ReadOnlyStore, name string) (*Item, error) {
	root, err := layout.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}

	root.Annotations = nil // the name is only for the archive

	ref, err := parseItemName(name)
	if err != nil {
		return nil, err
	}

	if ref.Digest != "" && ref.Digest != root.Digest {
		return nil, fmt.Errorf("the content has another digest: %s; make the archive again", root.Digest)
	}

	return newItem(ctx, ref, root, layout)
}

// parseItemName returns the reference of an item by its name. The references of charts have no
// registry.
func parseItemName(name string) (oci.Reference, error) {
	item := &Item{Name: name}
	if !item.IsChart() {
		return oci.ParseImage(name)
	}

	ref, err := oci.Parse("localhost/" + name)
	ref.Registry = ""

	return ref, err
}
