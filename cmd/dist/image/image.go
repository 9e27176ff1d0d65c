// Package image builds container images without a container engine. An image has a single layer. It
// is reproducible: the same files give the same digest on every machine.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
)

// File is a file or folder of an image.
type File struct {
	// Path is relative to the image's root, without a leading slash.
	Path string
	Data []byte

	// Mode holds the Unix permissions.
	Mode int64
	Dir  bool
}

// Image is the content of an image for one platform.
type Image struct {
	Platform ocispec.Platform

	// Files need not include the parent folders of files.
	Files []File

	// Config configures how the image is run.
	Config ocispec.ImageConfig

	// Created is the creation time of the image. Its files have no timestamps.
	Created time.Time
}

// push stores the image and returns its descriptor.
func (i Image) push(ctx context.Context, store content.Pusher) (ocispec.Descriptor, error) {
	layer, err := tarball(i.Files)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	packed, err := compress(layer)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	layers, err := push(ctx, store, ocispec.MediaTypeImageLayerGzip, packed)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	config, err := pushJSON(ctx, store, ocispec.MediaTypeImageConfig, ocispec.Image{
		Created:  &i.Created,
		Platform: i.Platform,
		Config:   i.Config,
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer)}},
	})
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	manifest, err := pushJSON(ctx, store, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   ocispec.MediaTypeImageManifest,
		Config:      config,
		Layers:      []ocispec.Descriptor{layers},
		Annotations: i.Config.Labels,
	})
	manifest.Platform = &i.Platform

	return manifest, err
}

func pushJSON(ctx context.Context, store content.Pusher, mediaType string, value any) (ocispec.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	return push(ctx, store, mediaType, data)
}

func push(ctx context.Context, store content.Pusher, mediaType string, data []byte) (ocispec.Descriptor, error) {
	descriptor := content.NewDescriptorFromBytes(mediaType, data)

	err := store.Push(ctx, descriptor, bytes.NewReader(data))
	if errors.Is(err, errdef.ErrAlreadyExists) {
		err = nil
	}

	return descriptor, err
}

// tarball packs files in the order of their paths, so that folders precede their files. All are
// owned by root and have no timestamps.
func tarball(files []File) ([]byte, error) {
	all := map[string]File{}

	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if _, known := all[dir]; !known {
				all[dir] = File{Path: dir, Mode: 0o755, Dir: true}
			}
		}

		all[f.Path] = f
	}

	sorted := make([]File, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}

	slices.SortFunc(sorted, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })

	var out bytes.Buffer

	w := tar.NewWriter(&out)

	for _, f := range sorted {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Format:   tar.FormatUSTAR,
			Name:     f.Path,
			Size:     int64(len(f.Data)),
			Mode:     f.Mode,
			ModTime:  time.Unix(0, 0),
		}

		if f.Dir {
			header.Typeflag = tar.TypeDir
			header.Name = strings.TrimSuffix(f.Path, "/") + "/"
		}

		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}

		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}

	err := w.Close()

	return out.Bytes(), err
}

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer

	w := gzip.NewWriter(&out)

	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}

	return out.Bytes(), nil
}
