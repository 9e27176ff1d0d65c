package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// Limits of an image whose files are read. They are far above a real provider's image (200 MB, some
// thousand entries), and keep memory small whatever an image contains.
const (
	maxEntries    = 200_000  // entries of all layers
	maxImageBytes = 4 << 30  // uncompressed bytes of all layers
	maxImageKept  = 32 << 20 // bytes of the files and names that are kept
	maxKeptFiles  = 4096     // files and whiteouts that are kept
	maxZstdWindow = 32 << 20 // bytes
)

// Names that mark deletions in a layer, by the OCI image specification.
const (
	whiteout       = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// Image reads the manifest of an image for one platform. Of an index it chooses linux/amd64, or
// else the first platform with linux.
//
// The pinned reference names what ref resolves to, which usually is the index: container runtimes
// on any platform can pull it.
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

	platforms = slices.DeleteFunc(platforms, func(d ocispec.Descriptor) bool {
		return d.Platform == nil || d.Platform.OS != "linux"
	})
	if len(platforms) == 0 {
		return pinned, nil, newInvalidError("pull", ref, "holds no image for linux")
	}

	chosen := slices.IndexFunc(platforms, func(d ocispec.Descriptor) bool { return d.Platform.Architecture == "amd64" })
	image, err = c.Artifact(ctx, pinned.WithDigest(platforms[max(chosen, 0)].Digest))

	return pinned, image, err
}

// Files reads the regular files in some folders of an image, as a container would see them: newer
// layers win over older ones, and files that they delete are gone. Keys of the result are paths
// from the root without a leading slash, for example "capi-manifests/metadata.yaml"; folders are
// given in the same form.
//
// Layers are streamed from the newest to the oldest, until isComplete reports that the files found so
// far are all the caller needs. A link in one of the folders is an error of kind Invalid, as is an image that
// exceeds the limits of this package.
func (c *Client) Files(
	ctx context.Context,
	image *Artifact,
	folders []string,
	isComplete func(files map[string][]byte) bool,
) (map[string][]byte, error) {
	l := &layers{
		ref: image.Reference, folders: folders, files: map[string][]byte{},
		bytes: maxImageBytes, kept: maxImageKept, entries: maxEntries,
	}

	for _, layer := range slices.Backward(image.Manifest.Layers) {
		if err := c.readLayer(ctx, l, layer); err != nil {
			return nil, wrapError("read", image.Reference, err)
		}

		if isComplete(l.files) {
			break
		}
	}

	return l.files, nil
}

// readLayer reads a layer to its end, where its digest is verified.
func (c *Client) readLayer(ctx context.Context, l *layers, layer ocispec.Descriptor) error {
	body, err := c.OpenBlob(ctx, l.ref, layer)
	if err != nil {
		return err
	}
	defer body.Close()

	plain, err := decompress(body)
	if err != nil {
		return l.invalid("a layer that cannot be decompressed: %v", err)
	}
	defer plain.Close()

	if err := l.read(plain); err != nil {
		return err
	}

	_, err = io.Copy(io.Discard, body) // the digest covers what follows the archive, too

	return err
}

// layers are what was read of an image's layers, from the newest to the oldest, and what is left of the limits.
type layers struct {
	ref     Reference
	folders []string
	files   map[string][]byte
	// hidden are paths that older layers may have but the image has not: whiteouts of files and of folders.
	hidden []string

	bytes, kept int64
	entries     int
}

// read adds the files of a layer.
func (l *layers) read(layer io.Reader) error {
	limited := &io.LimitedReader{R: layer, N: l.bytes}
	archive := tar.NewReader(limited)
	newer := slices.Clone(l.hidden) // whiteouts apply to older layers only, not to the layer they are in

	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			l.bytes = limited.N
			return nil
		}

		l.entries--
		if limited.N <= 0 || l.entries < 0 {
			return l.invalid("larger than %d GiB or more than %d files", maxImageBytes>>30, maxEntries)
		}

		if err == nil {
			err = l.add(header, archive, newer)
		}

		if known := new(transport.Error); err != nil && !errors.As(err, &known) {
			err = l.invalid("a layer that is not a tar archive: %v", err)
		}

		if err != nil {
			return err
		}
	}
}

// add keeps an entry of a layer if it is a file in one of the folders that newer layers do not hide, or a whiteout.
func (l *layers) add(header *tar.Header, content io.Reader, newer []string) error {
	name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
	folder, base := path.Split(name)

	switch deleted, isWhiteout := strings.CutPrefix(base, whiteout); {
	case base == opaqueWhiteout:
		return l.hide(strings.TrimSuffix(folder, "/"))
	case isWhiteout:
		return l.hide(folder + deleted)
	}

	_, replaced := l.files[name]
	isInside := func(folder string) bool { return name == folder || isIn(folder, name) }
	isHidden := slices.ContainsFunc(newer, isInside)

	switch {
	case header.Typeflag == tar.TypeDir || replaced || isHidden || !slices.ContainsFunc(l.folders, isInside):
		return nil
	case header.Typeflag != tar.TypeReg || slices.Contains(l.folders, name):
		return l.invalid("/%s is not a regular file in a folder; links are not followed", name)
	}

	if err := l.keep(name, header.Size); err != nil {
		return err
	}

	data, err := io.ReadAll(content)
	l.files[name] = data

	return err
}

// hide keeps a whiteout if it concerns one of the folders.
func (l *layers) hide(name string) error {
	if !slices.ContainsFunc(l.folders, func(folder string) bool { return isIn(folder, name) || isIn(name, folder+"/") }) {
		return nil
	}

	l.hidden = append(l.hidden, name)

	return l.keep(name, 0)
}

// isIn reports whether a path is in a folder, which is empty for the root.
func isIn(folder, name string) bool { return folder == "" || strings.HasPrefix(name, folder+"/") }

// keep counts what is about to be kept in memory.
func (l *layers) keep(name string, size int64) error {
	l.kept -= size + int64(len(name))
	if l.kept >= 0 && len(l.files)+len(l.hidden) <= maxKeptFiles {
		return nil
	}

	return l.invalid("/%.200s is larger than what a provider publishes (%d MiB and %d files in all)",
		name, maxImageKept>>20, maxKeptFiles)
}

func (l *layers) invalid(format string, args ...any) error {
	return newInvalidError("read", l.ref, format, args...)
}

// decompress returns the uncompressed layer. It recognizes gzip and zstd by their first bytes, since media types are
// often wrong.
func decompress(body io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(body)
	magic, _ := buffered.Peek(4) // a shorter layer is handled by the tar reader

	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderMaxMemory(maxZstdWindow))
		if err != nil {
			return nil, err
		}

		return r.IOReadCloser(), nil
	}

	return io.NopCloser(buffered), nil
}
