// Package image makes container images without a container engine: files go into one layer on top
// of nothing. The same files are the same bytes, and so the same digest, on every machine.
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

// File is a file of an image, or a folder if Mode says so.
type File struct {
	Path string // from the image's root, without a leading slash
	Data []byte
	Mode int64 // permissions
	Dir  bool
}

// Image is what an image for one platform is made from.
type Image struct {
	Platform ocispec.Platform
	Files    []File
	// Config is how the image is run. Folders on the way to files need not be among Files.
	Config ocispec.ImageConfig
	// Created is told as the image's age; files have no age.
	Created time.Time
}

// push stores the image and gives its descriptor.
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
		Created: &i.Created, Platform: i.Platform, Config: i.Config,
		RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer)}},
	})
	if err != nil {
		return ocispec.Descriptor{}, err
	}

	manifest, err := pushJSON(ctx, store, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{
			SchemaVersion: 2,
		},
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

// tarball packs files in the order of their paths, each folder before what is in it, all owned by
// root and without times.
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
			header.Typeflag, header.Name = tar.TypeDir, strings.TrimSuffix(f.Path, "/")+"/"
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
