package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Limits of an image whose files are read. They are far above a real provider's image (200 MB, some
// thousand entries), and keep memory small whatever an image contains.
const (
	maxEntries    = 200_000  // entries of all layers
	maxImageBytes = 4 << 30  // uncompressed bytes of all layers
	maxImageFile  = 16 << 20 // bytes of one file that is kept
	maxImageKept  = 32 << 20 // bytes of all files that are kept
	maxKeptFiles  = 4096     // files and whiteouts of one layer that are kept
	maxZstdWindow = 32 << 20 // bytes
)

// Names that mark deletions in a layer, by the OCI image specification.
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// layerReader reads the layers of an image, from the newest to the oldest.
type layerReader struct {
	ref     Reference
	folders []string
	// files of the layers so far.
	files map[string][]byte
	// hidden are paths that the layers so far hide from older ones: files and folders that they
	// delete or replace, and, with a slash at the end, folders of which they hide only the content.
	hidden []string
	// found are the files of the current layer.
	found map[string][]byte

	limits layerLimits
}

// layerLimits are what is left of the limits of an image.
type layerLimits struct {
	bytes, kept int64
	entries     int
}

// begin returns a reader for one attempt at the next layer. A failed attempt leaves r unchanged,
// limits included.
func (r *layerReader) begin() *layerReader {
	attempt := *r
	attempt.found = map[string][]byte{}
	attempt.hidden = slices.Clone(r.hidden)

	return &attempt
}

// commit takes over what a successful attempt read.
func (r *layerReader) commit(attempt *layerReader) {
	maps.Copy(r.files, attempt.found)
	r.hidden = attempt.hidden
	r.limits = attempt.limits
}

// readLayer reads one layer to its end, so that its digest is verified.
func (r *layerReader) readLayer(body io.Reader) error {
	plain, closePlain, err := decompress(body)
	if err != nil {
		return r.invalid("a layer that cannot be decompressed: %v", err)
	}
	defer closePlain()

	limited := &io.LimitedReader{R: plain, N: r.limits.bytes}
	hiddenByNewer := r.hidden // whiteouts apply to older layers only, not to the layer they are in

	archive := tar.NewReader(limited)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		r.limits.entries--
		if limited.N <= 0 || r.limits.entries < 0 {
			return r.invalid("larger than %d GiB or more than %d files", maxImageBytes>>30, maxEntries)
		}

		if err == nil {
			err = r.readEntry(header, archive, hiddenByNewer)
		}

		if err != nil {
			return r.archiveError(err)
		}
	}

	r.limits.bytes = limited.N
	_, err = io.Copy(io.Discard, body) // the digest covers what follows the archive, too

	return err
}

// readEntry keeps an entry if it is a wanted file, or a whiteout that hides wanted files.
func (r *layerReader) readEntry(header *tar.Header, content io.Reader, hiddenByNewer []string) error {
	name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
	folder, base := path.Split(name)

	switch {
	case base == opaqueWhiteout:
		return r.hide(folder)
	case strings.HasPrefix(base, whiteout):
		return r.hide(folder + strings.TrimPrefix(base, whiteout))
	case header.Typeflag == tar.TypeDir || !r.isRelevant(name) || isHidden(hiddenByNewer, name):
		return nil
	case header.Typeflag != tar.TypeReg:
		return r.invalid("/%s is not a regular file; links are not followed", name)
	case !slices.ContainsFunc(r.folders, func(f string) bool { return strings.HasPrefix(name, f+"/") }):
		return r.invalid("/%s is a file; it must be a folder", name)
	}

	if _, newer := r.files[name]; newer {
		return nil
	}

	if header.Size > maxImageFile {
		return r.tooLarge(name)
	}

	if err := r.reserve(name, header.Size); err != nil {
		return err
	}

	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}

	r.found[name] = data

	return nil
}

// isRelevant reports whether a path is one of the wanted folders, is in one, or contains one.
func (r *layerReader) isRelevant(name string) bool {
	name = strings.TrimSuffix(name, "/") + "/"

	return name == "/" || slices.ContainsFunc(r.folders, func(f string) bool {
		return strings.HasPrefix(name, f+"/") || strings.HasPrefix(f+"/", name)
	})
}

// hide records a whiteout.
func (r *layerReader) hide(name string) error {
	if !r.isRelevant(name) {
		return nil
	}

	r.hidden = append(r.hidden, name)

	return r.reserve(name, 0)
}

// reserve counts what is about to be kept in memory.
func (r *layerReader) reserve(name string, size int64) error {
	r.limits.kept -= size + int64(len(name))
	if r.limits.kept < 0 || len(r.found)+len(r.hidden) > maxKeptFiles {
		return r.tooLarge(name)
	}

	return nil
}

// isHidden reports whether one of the hidden paths is the given one or a folder that contains it.
func isHidden(hidden []string, name string) bool {
	return slices.ContainsFunc(hidden, func(h string) bool {
		if h == name || h == "" { // "" is the content of the root
			return true
		}

		return strings.HasPrefix(name, strings.TrimSuffix(h, "/")+"/")
	})
}

// archiveError returns errors of the connection as they are, and others as a broken archive.
func (r *layerReader) archiveError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}

	return r.invalid("a layer that is not a tar archive: %v", err)
}

func (r *layerReader) tooLarge(name string) error {
	return r.invalid(
		"/%s is larger than what a provider publishes (%d MiB in a file, %d MiB and %d files in all)",
		name,
		maxImageFile>>20,
		maxImageKept>>20,
		maxKeptFiles,
	)
}

func (r *layerReader) invalid(format string, args ...any) error {
	return newInvalidError("read", r.ref, format, args...)
}

// decompress returns a reader of the uncompressed layer and a function that closes it. It recognizes
// gzip and zstd by their first bytes, since media types are often wrong.
func decompress(body io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReader(body)
	noop := func() {}

	magic, _ := buffered.Peek(4) // a shorter layer is handled by the tar reader

	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(buffered)
		return r, noop, err
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(
			buffered,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(maxZstdWindow),
			zstd.WithDecoderMaxMemory(maxZstdWindow),
		)
		if err != nil {
			return nil, nil, err
		}

		return r, r.Close, nil
	}

	return buffered, noop, nil
}
