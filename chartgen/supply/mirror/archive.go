package mirror

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	ocilayout "oras.land/oras-go/v2/content/oci"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Archive is a mirror in one file: an OCI image layout in a tar archive, which oras, crane and
// skopeo read too. Items have their names in the annotation org.opencontainers.image.ref.name.
type Archive struct {
	file    string
	work    string             // the folder where the layout grows, beside the file
	storage *ocilayout.Storage // in that folder
	previous  content.ReadOnlyStorage

	mu    sync.Mutex
	names map[string]ocispec.Descriptor
}

// workSuffix makes the name of the folder in which an archive grows.
const workSuffix = ".partial"

// CreateArchive begins an archive, or goes on with one that was interrupted. What an older archive
// of the name holds is taken from it. The caller owes a Close when all items are copied; without
// it, what was copied so far stays for the next time.
func CreateArchive(file string) (*Archive, error) {
	work := file + workSuffix
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}

	storage, err := ocilayout.NewStorage(work)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", work, err)
	}

	a := &Archive{file: file, work: work, storage: storage, names: map[string]ocispec.Descriptor{}}
	if _, err := os.Stat(file); err == nil {
		if a.previous, err = ocilayout.NewStorageFromTar(file); err != nil {
			return nil, fmt.Errorf("%s is there and no archive of a mirror; delete it or give another name: %w", file, err)
		}
	}

	return a, nil
}

func (a *Archive) prepare(_ context.Context, item *Item) (content.Storage, bool, func(context.Context) error, error) {
	if a.previous != nil {
		item.source = &fallbackStorage{primary: a.previous, fallback: item.source}
	}

	return a.storage, false, func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()

		a.names[item.Name] = item.Root

		return nil
	}, nil
}

// Close packs the archive: it holds the items that were copied, and nothing else.
func (a *Archive) Close(ctx context.Context) error {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	needed := map[string]bool{}

	for name, root := range a.names {
		item := &Item{Name: name, Root: root, source: a.storage}
		if err := item.walk(ctx); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}

		for _, blob := range item.blobs {
			needed[path.Join(ocispec.ImageBlobsDir, blob.Digest.Algorithm().String(), blob.Digest.Encoded())] = true
		}

		entry := ocispec.Descriptor{
			MediaType:   root.MediaType,
			Digest:      root.Digest,
			Size:        root.Size,
			Annotations: map[string]string{ocispec.AnnotationRefName: name},
		}
		index.Manifests = append(index.Manifests, entry)
	}

	slices.SortFunc(index.Manifests, func(x, y ocispec.Descriptor) int {
		return strings.Compare(x.Annotations[ocispec.AnnotationRefName], y.Annotations[ocispec.AnnotationRefName])
	})

	unfinished := a.file + ".tmp"
	if err := a.pack(unfinished, index, needed); err != nil {
		_ = os.Remove(unfinished) // it is useless
		return fmt.Errorf("write %s: %w", a.file, err)
	}

	return errors.Join(os.Rename(unfinished, a.file), os.RemoveAll(a.work))
}

// pack writes the archive: the same content gives the same bytes.
func (a *Archive) pack(file string, index ocispec.Index, needed map[string]bool) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	layout, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}

	list, err := json.Marshal(index)
	if err != nil {
		return err
	}

	if err := errors.Join(
		addEntry(out, ocispec.ImageLayoutFile, bytes.NewReader(layout), int64(len(layout))),
		addEntry(out, ocispec.ImageIndexFile, bytes.NewReader(list), int64(len(list))),
	); err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if err := addFile(out, a.work, name); err != nil {
			return err
		}
	}

	return tar.NewWriter(out).Close()
}

func addFile(out *os.File, folder, name string) error {
	in, err := os.Open(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer in.Close()

	info, err := in.Stat()
	if err != nil {
		return err
	}

	return addEntry(out, name, in, info.Size())
}

// addEntry appends an entry to a tar archive. Its content is not passed through a tar writer, so
// that from one file to another the kernel copies it.
func addEntry(out *os.File, name string, content io.Reader, size int64) error {
	if err := tar.NewWriter(out).
		WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		return err
	}

	if _, err := io.CopyN(out, content, size); err != nil {
		return err
	}

	const block = 512

	_, err := out.Write(make([]byte, (block-size%block)%block))

	return err
}

// OpenArchive finds the items of an archive.
func OpenArchive(ctx context.Context, file string) ([]*Item, error) {
	layout, err := ocilayout.NewFromTar(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	if err != nil {
		return nil, fmt.Errorf("%s is no OCI image layout in a tar archive: %w", file, err)
	}

	var names []string

	if err := layout.Tags(ctx, "", func(page []string) error {
		names = append(names, page...)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	var items []*Item

	for _, name := range names {
		root, err := layout.Resolve(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}

		ref, err := archivedReference(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}

		root.Annotations = nil

		item, err := newItem(ctx, ref, root, layout)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}

		items = append(items, item)
	}

	return sortItems(items), nil
}

// archivedReference reads an item's name.
func archivedReference(name string) (oci.Reference, error) {
	if !(&Item{Name: name}).IsChart() {
		return oci.ParseImage(name)
	}

	ref, err := oci.Parse("localhost/" + name)
	ref.Registry = ""

	return ref, err
}

// either is two storages, of which the first is nearer.
type fallbackStorage struct {
	primary, fallback content.ReadOnlyStorage
}

func (e *fallbackStorage) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if there, err := e.primary.Exists(ctx, desc); err == nil && there {
		return true, nil
	}

	return e.fallback.Exists(ctx, desc)
}

func (e *fallbackStorage) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if there, err := e.primary.Exists(ctx, desc); err == nil && there {
		return e.primary.Fetch(ctx, desc)
	}

	return e.fallback.Fetch(ctx, desc)
}
