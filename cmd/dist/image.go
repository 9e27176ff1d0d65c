package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/capstan-project/capstan/cmd/dist/image"
)

// repository is the repository of the operator's image.
const repository = "ghcr.io/capstan-project/capstan"

// user is the unprivileged user ID that runs the operator.
const user = "65532"

// operatorFiles returns the files of the operator's image.
func operatorFiles(ctx context.Context, version, arch string) ([]image.File, error) {
	dir, err := os.MkdirTemp("", "operator-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	file := filepath.Join(dir, "operator")
	if err := compile(ctx, "./cmd/operator", file, version, platform{"linux", arch}); err != nil {
		return nil, err
	}

	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	passwd := "root:x:0:0:root:/:/sbin/nologin\n" +
		"capstan:x:" + user + ":" + user + ":capstan:/tmp:/sbin/nologin\n"
	group := "root:x:0:\n" +
		"capstan:x:" + user + ":\n"

	return []image.File{
		{Path: "operator", Data: program, Mode: 0o755},
		{Path: "etc/passwd", Data: []byte(passwd), Mode: 0o644},
		{Path: "etc/group", Data: []byte(group), Mode: 0o644},
		{Path: "etc/ssl/certs/ca-certificates.crt", Data: roots(), Mode: 0o644},
		{Path: "tmp", Mode: 0o1777, Dir: true},
	}, nil
}

// roots returns the certificate authorities that Mozilla trusts, from a pinned Go module.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		// Writing to a buffer never fails.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}

	return out.Bytes()
}

// writeImage writes the operator's image as an OCI archive and returns its digest.
func writeImage(ctx context.Context, file, version string, platforms []platform) (string, error) {
	created, err := commitTime(ctx)
	if err != nil {
		return "", err
	}

	config := ocispec.ImageConfig{
		User:       user + ":" + user,
		Entrypoint: []string{"/operator"},
		WorkingDir: "/",
		Labels: map[string]string{
			ocispec.AnnotationTitle:    "capstan",
			ocispec.AnnotationVersion:  version,
			ocispec.AnnotationLicenses: "Apache-2.0",
			ocispec.AnnotationSource:   "https://github.com/capstan-project/capstan",
		},
	}

	var images []image.Image

	for _, p := range platforms {
		files, err := operatorFiles(ctx, version, p.arch)
		if err != nil {
			return "", err
		}

		images = append(images, image.Image{
			Platform: ocispec.Platform{OS: p.os, Architecture: p.arch},
			Files:    files,
			Config:   config,
			Created:  created,
		})
	}

	return image.Write(ctx, file, repository+":"+version, images...)
}

// writeRootFS writes the files of the operator's image to a folder, for the Dockerfile.
func writeRootFS(ctx context.Context, folder, version, arch string) error {
	if arch == "" {
		arch = runtime.GOARCH
	}

	files, err := operatorFiles(ctx, version, arch)
	if err != nil {
		return err
	}

	for _, f := range files {
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(f.Path)), f); err != nil {
			return err
		}
	}

	return nil
}

// writeFile writes a file or folder of the image to path.
func writeFile(path string, f image.File) error {
	var err error

	if f.Dir {
		err = os.MkdirAll(path, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = os.WriteFile(path, f.Data, 0o600)
	}

	if err != nil {
		return err
	}

	// The umask does not affect Chmod.
	return os.Chmod(path, fileMode(f.Mode))
}

// fileMode converts a Unix mode.
func fileMode(mode int64) os.FileMode {
	const sticky = 0o1000

	converted := os.FileMode(mode & 0o777)
	if mode&sticky != 0 {
		converted |= os.ModeSticky
	}

	return converted
}
