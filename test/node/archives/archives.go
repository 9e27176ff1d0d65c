// Package archives builds programs, and writes archives with images of them for a real node.
package archives

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	// operatorImage is the operator's image, without a tag.
	operatorImage = "ghcr.io/capstan-project/capstan"
	// user is the user of all containers, unless their pod sets another one.
	user = "65532"
)

// Builder builds packages of the module with this root.
type Builder struct {
	Root string
}

// Operator writes the operator's image, with a version as its tag, to an archive in a folder.
func (b Builder) Operator(ctx context.Context, version, folder string) error {
	program := filepath.Join(folder, "operator")
	if err := b.build(ctx, "./cmd/operator", program, " -X main.version="+version); err != nil {
		return err
	}

	return Write(folder, operatorImage+":"+version, program, "/operator")
}

// Program builds a static program from a package, such as "./cmd/capstan".
func (b Builder) Program(ctx context.Context, pkg, out string) error {
	return b.build(ctx, pkg, out, "")
}

func (b Builder) build(ctx context.Context, pkg, out, ldflags string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w"+ldflags, "-o", out, pkg)
	cmd.Dir = b.Root

	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}

	return nil
}

// Write writes an image to an archive in a folder. It contains a static program and an empty /tmp. The entrypoint
// starts with the program's path in the image.
func Write(folder, image, program string, entrypoint ...string) error {
	files, err := pack(program, entrypoint[0])
	if err != nil {
		return err
	}

	return save(folder, image, files, v1.Config{User: user, Entrypoint: entrypoint})
}

// WriteFiles writes an image to an archive in a folder. It contains the files of another folder, for an image volume.
func WriteFiles(folder, image, from string) error {
	var files bytes.Buffer

	w := tar.NewWriter(&files)
	if err := errors.Join(w.AddFS(os.DirFS(from)), w.Close()); err != nil {
		return err
	}

	return save(folder, image, files.Bytes(), v1.Config{})
}

// save writes an image with one layer, which is a tar archive, to an archive in a folder.
func save(folder, image string, files []byte, options v1.Config) error {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	})
	if err != nil {
		return err
	}

	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}

	config, err := built.ConfigFile()
	if err != nil {
		return err
	}

	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", runtime.GOARCH, options

	if built, err = mutate.ConfigFile(built, config); err != nil {
		return err
	}

	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}

	archive := strings.NewReplacer("/", "-", ":", "-").Replace(image) + ".tar"

	return tarball.WriteToFile(filepath.Join(folder, archive), tag, built)
}

// pack returns the files of an image: a program at a path, and an empty /tmp.
func pack(program, path string) ([]byte, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	w := tar.NewWriter(&out)

	for _, header := range []*tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: strings.TrimPrefix(path, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))},
	} {
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}

	if _, err := w.Write(content); err != nil {
		return nil, err
	}

	return out.Bytes(), w.Close()
}
