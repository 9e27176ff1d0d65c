package mirror

import (
	"archive/tar"
	"bytes"
	"cmp"
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
	"sync"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	ocilayout "oras.land/oras-go/v2/content/oci"
)

// workSuffix is appended to the name of an archive for its work folder.
const workSuffix = ".partial"

// Archive is a mirror in a single file: a tar archive of an OCI image layout, which oras, crane and
// skopeo can read too. Each item has its name in the annotation org.opencontainers.image.ref.name.
//
// Blobs are collected in a work folder next to the file, and Close writes the file.
type Archive struct {
	file     string
	work     string                  // the work folder
	storage  *ocilayout.Storage      // in the work folder
	previous content.ReadOnlyStorage // an earlier archive of the same name; nil if there is none

	mu    sync.Mutex
	roots map[string]ocispec.Descriptor // of the items that were copied, by name
}

// CreateArchive starts an archive, or continues one that was interrupted. Content that an existing
// archive of the name has is not downloaded again.
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

	a := &Archive{file: file, work: work, storage: storage, roots: map[string]ocispec.Descriptor{}}

	if _, err := os.Stat(file); err == nil {
		a.previous, err = ocilayout.NewStorageFromTar(file)
		if err != nil {
			return nil, fmt.Errorf("%s exists and is not the archive of a mirror; delete it or give another name: %w", file, err)
		}
	}

	return a, nil
}

// prepare returns the work folder as the destination.
func (a *Archive) prepare(_ context.Context, item *Item) (*destination, error) {
	if a.previous != nil {
		item.source = &fallbackStorage{primary: a.previous, fallback: item.source}
	}

	finish := func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()

		a.roots[item.Name] = item.Root

		return nil
	}

	return &destination{storage: a.storage, finish: finish}, nil
}

// Close writes the file and removes the work folder. The file contains the items that were copied
// since CreateArchive, and nothing else.
func (a *Archive) Close(ctx context.Context) error {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	blobs := map[string]bool{} // paths in the layout

	for name, root := range a.roots {
		item := &Item{Name: name, Root: root, source: a.storage}
		if err := item.walk(ctx); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}

		for _, b := range item.blobs {
			blobs[path.Join(ocispec.ImageBlobsDir, b.Digest.Algorithm().String(), b.Digest.Encoded())] = true
		}

		index.Manifests = append(index.Manifests, ocispec.Descriptor{
			MediaType:   root.MediaType,
			Digest:      root.Digest,
			Size:        root.Size,
			Annotations: map[string]string{ocispec.AnnotationRefName: name},
		})
	}

	slices.SortFunc(index.Manifests, func(x, y ocispec.Descriptor) int {
		return cmp.Compare(x.Annotations[ocispec.AnnotationRefName], y.Annotations[ocispec.AnnotationRefName])
	})

	unfinished := a.file + ".tmp"
	if err := a.pack(unfinished, index, slices.Sorted(maps.Keys(blobs))); err != nil {
		_ = os.Remove(unfinished) // the error that matters is the one above
		return fmt.Errorf("write %s: %w", a.file, err)
	}

	return errors.Join(os.Rename(unfinished, a.file), os.RemoveAll(a.work))
}

// pack writes the layout with an index and some blobs of the work folder to a tar archive. The same
// content always gives the same bytes.
func (a *Archive) pack(file string, index ocispec.Index, blobs []string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	layout := ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}
	if err := addJSON(out, ocispec.ImageLayoutFile, layout); err != nil {
		return err
	}

	if err := addJSON(out, ocispec.ImageIndexFile, index); err != nil {
		return err
	}

	for _, name := range blobs {
		if err := addFile(out, a.work, name); err != nil {
			return err
		}
	}

	return tar.NewWriter(out).Close() // writes the end of the archive
}

// addJSON adds a value as a JSON file to an archive.
func addJSON(archive *os.File, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}

	return add(archive, name, bytes.NewReader(data), int64(len(data)))
}

// addFile adds a file of a folder to an archive.
func addFile(archive *os.File, folder, name string) error {
	in, err := os.Open(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer in.Close()

	info, err := in.Stat()
	if err != nil {
		return err
	}

	return add(archive, name, in, info.Size())
}

// add adds an entry to an archive. It copies the content itself, because the writer of the package tar hides from
// the system that one file is copied to another: Linux does that without the detour through this process.
func add(archive *os.File, name string, content io.Reader, size int64) error {
	if err := tar.NewWriter(archive).WriteHeader(newHeader(name, size)); err != nil {
		return err
	}

	if _, err := io.CopyN(archive, content, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	const block = 512

	_, err := archive.Write(make([]byte, -size&(block-1)))

	return err
}

// newHeader returns the header of a file, without times and owners.
func newHeader(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}
}
