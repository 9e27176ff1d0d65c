package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds of an image whose files are read: far above a provider's (200 MB, some thousand entries),
// and little memory whatever it holds.
const (
	maxEntries     = 200_000
	maxImageBytes  = 4 << 30  // unpacked, of all layers
	maxImageFile   = 32 << 20 // of one file that is kept
	maxImageKept   = 64 << 20 // of all files that are kept
	maxKeptFiles   = 4096
	maxZstdWindow  = 32 << 20
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// Image resolves a reference to the manifest of one platform, linux/amd64 if there is a choice. It
// gives the reference pinned to what the reference names, an index as a rule, since that is what a
// container runtime on any platform can pull.
func (c *Client) Image(ctx context.Context, ref Reference) (pinned Reference, image *Artifact, err error) {
	desc, err := c.Resolve(ctx, ref)
	if err != nil {
		return ref, nil, err
	}

	pinned = ref.WithDigest(desc.Digest)
	if !IsIndex(desc) {
		image, err = c.Artifact(ctx, pinned)
		return pinned, image, err
	}

	platforms, err := c.Index(ctx, pinned)
	if err != nil {
		return pinned, nil, err
	}

	platforms = slices.DeleteFunc(
		platforms,
		func(d ocispec.Descriptor) bool { return d.Platform == nil || d.Platform.OS != "linux" },
	)
	if len(platforms) == 0 {
		return pinned, nil, newInvalidError("pull", ref, "holds no image for linux")
	}

	chosen := max(
		0,
		slices.IndexFunc(platforms, func(d ocispec.Descriptor) bool { return d.Platform.Architecture == "amd64" }),
	)
	image, err = c.Artifact(ctx, pinned.WithDigest(platforms[chosen].Digest))

	return pinned, image, err
}

// Files reads the regular files of an image that lie in one of the folders or below, by their paths
// from the root without a leading slash, as a container would see them: the newest layer wins, and
// what it deletes is gone. Layers are streamed from the newest on, until enough says of what was
// found so far that the rest does not matter. A link in a folder is an error of reason Invalid, as
// is an image beyond all bounds.
func (c *Client) Files(
	ctx context.Context,
	image *Artifact,
	folders []string,
	enough func(files map[string][]byte) bool,
) (map[string][]byte, error) {
	w := &layerReader{
		ref:         image.Reference,
		folders:     folders,
		files:       map[string][]byte{},
		bytesLeft:   maxImageBytes,
		keptLeft:    maxImageKept,
		entriesLeft: maxEntries,
	}
	for _, layer := range slices.Backward(image.Manifest.Layers) {
		if err := c.readLayer(ctx, w, layer); err != nil {
			return nil, wrapError("read", image.Reference, err)
		}

		if enough(w.files) {
			break
		}
	}

	return w.files, nil
}

// walkLayer streams a layer, again when the connection is cut. Nothing of a layer counts before its
// digest is verified.
func (c *Client) readLayer(ctx context.Context, w *layerReader, layer ocispec.Descriptor) error {
	return retryBody(ctx, func() error {
		body, err := c.OpenBlob(ctx, w.ref, layer)
		if err != nil {
			return err
		}
		defer body.Close()

		this := *w // bounds and all: an attempt that fails leaves no trace

		this.found, this.hidden = map[string][]byte{}, slices.Clone(w.hidden)
		if err := this.readLayer(body); err != nil {
			return err
		}

		for name, data := range this.found {
			w.files[name] = data
		}

		w.hidden, w.bytesLeft, w.keptLeft, w.entriesLeft = this.hidden, this.bytesLeft, this.keptLeft, this.entriesLeft

		return nil
	})
}

// layerWalk is how far the walk through an image's layers has come.
type layerReader struct {
	ref     Reference
	folders []string
	files   map[string][]byte // of the layers so far
	// hidden are what the layers so far hide from those below: files and folders that they delete
	// or replace, and with a slash at the end folders of which they hide the content alone.
	hidden []string
	found  map[string][]byte // in this layer

	bytesLeft, keptLeft int64
	entriesLeft         int
}

func (w *layerReader) readLayer(body io.Reader) error {
	plain, done, err := decompress(body)
	if err != nil {
		return w.invalid("a layer that cannot be unpacked: %v", err)
	}
	defer done()

	bounded := &io.LimitedReader{R: plain, N: w.bytesLeft}
	upper := w.hidden // of the layers above: this layer's own whiteouts are for those below

	archive := tar.NewReader(bounded)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		if w.entriesLeft--; bounded.N <= 0 || w.entriesLeft < 0 {
			return w.invalid("larger than %d GiB or more than %d files", maxImageBytes>>30, maxEntries)
		}

		if err == nil {
			err = w.readEntry(header, archive, upper)
		}

		if err != nil {
			return w.archiveError(err)
		}
	}

	w.bytesLeft = bounded.N
	_, err = io.Copy(io.Discard, body) // what follows the archive is part of the digest

	return err
}

// entry looks at one entry of a layer.
func (w *layerReader) readEntry(header *tar.Header, content io.Reader, upper []string) error {
	name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")

	folder, base := path.Split(name)
	switch {
	case base == opaqueWhiteout:
		return w.hide(folder)
	case strings.HasPrefix(base, whiteout):
		return w.hide(folder + strings.TrimPrefix(base, whiteout))
	case header.Typeflag == tar.TypeDir || !w.isRelevant(name) || isHidden(upper, name):
		return nil
	case header.Typeflag != tar.TypeReg:
		return w.invalid("/%s is not a regular file; links are not followed", name)
	case !slices.ContainsFunc(w.folders, func(f string) bool { return strings.HasPrefix(name, f+"/") }):
		return w.invalid("/%s is a file; it must be a folder", name)
	}

	if _, newer := w.files[name]; newer {
		return nil
	}

	if header.Size > maxImageFile {
		return w.tooLarge(name)
	}

	if err := w.reserve(name, header.Size); err != nil {
		return err
	}

	data := bytes.NewBuffer(nil)
	if _, err := io.Copy(data, content); err != nil {
		return err
	}

	w.found[name] = data.Bytes()

	return nil
}

// concerns reports whether a path is a folder that is looked for, lies in one, or has one in it.
func (w *layerReader) isRelevant(name string) bool {
	name = strings.TrimSuffix(name, "/") + "/"

	return name == "/" || slices.ContainsFunc(w.folders, func(f string) bool {
		return strings.HasPrefix(name, f+"/") || strings.HasPrefix(f+"/", name)
	})
}

func (w *layerReader) hide(name string) error {
	if !w.isRelevant(name) {
		return nil
	}

	w.hidden = append(w.hidden, name)

	return w.reserve(name, 0)
}

// keep counts what stays in memory.
func (w *layerReader) reserve(name string, size int64) error {
	if w.keptLeft -= size + int64(len(name)); w.keptLeft < 0 || len(w.found)+len(w.hidden) > maxKeptFiles {
		return w.tooLarge(name)
	}

	return nil
}

func (w *layerReader) tooLarge(name string) error {
	return w.invalid(
		"/%s is larger than what a provider publishes (%d MiB in a file, %d MiB and %d files in all)",
		name,
		maxImageFile>>20,
		maxImageKept>>20,
		maxKeptFiles,
	)
}

// hides reports whether newer layers hide a path, by itself or with a folder that it is in.
func isHidden(hidden []string, name string) bool {
	return slices.ContainsFunc(hidden, func(h string) bool {
		folder := h
		if !strings.HasSuffix(h, "/") {
			if h == name {
				return true
			}

			folder += "/"
		}

		return strings.HasPrefix(name, folder) || folder == "/"
	})
}

// archiveError tells a broken archive from a broken connection, which the body explains itself.
func (w *layerReader) archiveError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}

	return w.invalid("a layer that is not a tar archive: %v", err)
}

func (w *layerReader) invalid(format string, args ...any) error {
	return &Error{Action: "read", Reference: w.ref.String(), Reason: Invalid, Message: fmt.Sprintf(format, args...)}
}

// unpacked reads through the compression that the first bytes tell of; media types are often wrong.
func decompress(body io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReader(body)

	magic, _ := buffered.Peek(4) // whatever is there
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(buffered)
		return r, func() {}, err
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

	return buffered, func() {}, nil
}
