package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"
)

// containerdName is the annotation that containerd reads the name of an image in an archive from.
const containerdName = "io.containerd.image.name"

// Write writes an OCI archive with the images of several platforms under one name, such as
// "registry.example.com/capstan:v1.2.3", and returns the digest of the index. skopeo, crane, ctr and
// Docker (25 or later) can read the archive.
func Write(ctx context.Context, file, name string, images ...Image) (digest string, err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	store, err := oci.NewStorage(dir)
	if err != nil {
		return "", err
	}

	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}

	for _, i := range images {
		manifest, err := i.push(ctx, store)
		if err != nil {
			return "", fmt.Errorf("image %s for %s/%s: %w", name, i.Platform.OS, i.Platform.Architecture, err)
		}

		index.Manifests = append(index.Manifests, manifest)
	}

	root, err := pushJSON(ctx, store, ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return "", err
	}

	root.Annotations = map[string]string{containerdName: name, ocispec.AnnotationRefName: name}
	top := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []ocispec.Descriptor{root}}

	for file, content := range map[string]any{
		ocispec.ImageLayoutFile: ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion},
		ocispec.ImageIndexFile:  top,
	} {
		data, err := json.Marshal(content)
		if err != nil {
			return "", err
		}

		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return "", err
		}
	}

	return root.Digest.String(), pack(dir, file)
}

// pack packs a folder into an archive, in the order of names and without timestamps.
func pack(dir, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()

	w := tar.NewWriter(out)
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}

		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Format:   tar.FormatUSTAR,
			Name:     name,
			Size:     int64(len(data)),
			Mode:     0o644,
			ModTime:  time.Unix(0, 0),
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}

		_, err = w.Write(data)

		return err
	})

	return errors.Join(err, w.Close())
}
