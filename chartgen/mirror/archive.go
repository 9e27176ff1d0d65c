package mirror

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	ocilayout "oras.land/oras-go/v2/content/oci"

	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/oci"
)

// workSuffix is appended to the name of an archive for its work folder.
const workSuffix = ".partial"

// Archive is a mirror in a single file: a tar archive of an OCI image layout, which oras, crane and
// skopeo can read too. Each item has its name in the annotation org.opencontainers.image.ref.name.
//
// Blobs are collected in a work folder next to the file, and Close writes the file.
type Archive struct {
	file     string
	work     string                     // the work folder
	storage  *ocilayout.Storage         // in the work folder
	previous *ocilayout.ReadOnlyStorage // an earlier archive of the same name; nil if there is none

	mu    sync.Mutex
	items map[string]*Item // what was copied, by name
}

// CreateArchive starts an archive, or continues an interrupted one. It does not download again what an existing archive
// of the same name contains.
//
// Call Close when all items are copied. Otherwise the work folder is kept for the next attempt.
func CreateArchive(file string) (*Archive, error) {
	work := file + workSuffix
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}

	storage, err := ocilayout.NewStorage(work)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", work, err)
	}

	a := &Archive{file: file, work: work, storage: storage, items: map[string]*Item{}}

	if _, err := os.Stat(file); err == nil {
		a.previous, err = ocilayout.NewStorageFromTar(file)
		if err != nil {
			return nil, fmt.Errorf("%s exists and is not the archive of a mirror; delete it or give another name: %w", file, err)
		}
	}

	return a, nil
}

// open returns the work folder, with what an earlier archive has of the item.
func (a *Archive) open(ctx context.Context, item *Item) (content.Storage, finishFunc, error) {
	if a.previous != nil {
		if exists, err := a.previous.Exists(ctx, item.Root); err == nil && exists {
			if err := oras.CopyGraph(ctx, a.previous, a.storage, item.Root, oras.DefaultCopyGraphOptions); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", a.file, err)
			}
		}
	}

	finish := func(context.Context, content.Fetcher) error {
		a.mu.Lock()
		defer a.mu.Unlock()

		a.items[item.Name] = item

		return nil
	}

	return a.storage, finish, nil
}

// Close writes the file and removes the work folder. The file contains the items that were copied
// since CreateArchive, and nothing else.
func (a *Archive) Close() error {
	unfinished := a.file + ".tmp"
	if err := a.pack(unfinished); err != nil {
		_ = os.Remove(unfinished) // the error that matters is the one above
		return fmt.Errorf("write %s: %w", a.file, err)
	}

	return errors.Join(os.Rename(unfinished, a.file), os.RemoveAll(a.work))
}

// pack writes the layout to a tar archive. The same content always gives the same bytes.
func (a *Archive) pack(file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	archive := tar.NewWriter(out)
	defer func() { err = errors.Join(err, archive.Close()) }()

	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	blobs := map[digest.Digest]int64{}

	for _, name := range slices.Sorted(maps.Keys(a.items)) {
		item := a.items[name]
		roots := item.roots()
		roots[0].Annotations = map[string]string{ocispec.AnnotationRefName: name}
		index.Manifests = append(index.Manifests, roots...)

		maps.Copy(blobs, item.sizes)
	}

	layout := ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}
	if err := addJSON(archive, ocispec.ImageLayoutFile, layout); err != nil {
		return err
	}

	if err := addJSON(archive, ocispec.ImageIndexFile, index); err != nil {
		return err
	}

	for _, blob := range slices.Sorted(maps.Keys(blobs)) {
		if err := a.addBlob(archive, blob, blobs[blob]); err != nil {
			return err
		}
	}

	return nil
}

// addJSON adds a value as a JSON file to an archive.
func addJSON(archive *tar.Writer, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}

	return add(archive, name, bytes.NewReader(data), int64(len(data)))
}

// addBlob adds a blob of the work folder to an archive.
func (a *Archive) addBlob(archive *tar.Writer, blob digest.Digest, size int64) error {
	name := path.Join(ocispec.ImageBlobsDir, blob.Algorithm().String(), blob.Encoded())

	file, err := os.Open(filepath.Join(a.work, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer file.Close()

	return add(archive, name, file, size)
}

// add adds a file to an archive, without times and owners.
func add(archive *tar.Writer, name string, content io.Reader, size int64) error {
	header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}

	_, err := io.Copy(archive, content)

	return err
}

// Limits of an archive: ten times what the mirror of all providers has.
const (
	// maxIndex is the maximum size of its index in bytes, and maxIndexValues that of its values, which are six a name.
	maxIndex       = 4 << 20
	maxIndexValues = 100000
	// maxArchiveContent is the maximum number of manifests and blobs of all items.
	maxArchiveContent = 1000000
)

// OpenArchive returns the items of an archive, by name. The file must stay in place while they are copied.
func OpenArchive(ctx context.Context, file string) ([]*Item, error) {
	ctx, cancel := context.WithTimeout(ctx, maxLookup)
	defer cancel()

	if err := checkIndex(file); err != nil {
		return nil, err
	}

	layout, err := ocilayout.NewFromTar(ctx, file)
	if err != nil {
		return nil, notArchive(file, err)
	}

	var (
		items []*Item
		count int
	)

	err = layout.Tags(ctx, "", func(names []string) error {
		for _, name := range names {
			item, err := openItem(ctx, layout, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}

			items = append(items, item)

			if count += len(item.sizes); count > maxArchiveContent {
				return fmt.Errorf("its images have more than %d manifests and layers", maxArchiveContent)
			}
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	return items, nil
}

// notArchive returns the error of a file that cannot be read as an archive.
func notArchive(file string, err error) error {
	return fmt.Errorf("%s is not an OCI image layout in a tar archive: %w", file, err)
}

// checkIndex returns an error if the index of an archive is too large to be read. Of several, the last one counts for
// readers, so all are checked.
func checkIndex(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()

	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return notArchive(file, err)
		}

		if path.Clean(header.Name) != ocispec.ImageIndexFile {
			continue
		}

		data, err := io.ReadAll(io.LimitReader(archive, maxIndex+1))

		switch {
		case err != nil:
			return notArchive(file, err)
		case len(data) > maxIndex, limit.List(data, maxIndexValues) != nil:
			return fmt.Errorf("%s: its %s is larger than that of any mirror: %d KiB and %d values are the limit; create "+
				"several archives", file, ocispec.ImageIndexFile, maxIndex>>10, maxIndexValues)
		}
	}
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

	return newItem(ctx, ref, root, layout)
}

// parseItemName returns the reference of an item by its name. The references of charts have no
// registry.
func parseItemName(name string) (oci.Reference, error) {
	if !strings.HasPrefix(name, chartsFolder+"/") {
		return oci.ParseImage(name)
	}

	ref, err := oci.Parse("localhost/" + name)
	ref.Registry = ""

	return ref, err
}
