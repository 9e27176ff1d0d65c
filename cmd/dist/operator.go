package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/capstan-project/capstan/cmd/dist/image"
)

// repository is the name of the operator's image.
const repository = "ghcr.io/capstan-project/capstan"

// user runs the operator: nobody's, and not root.
const user = "65532"

// platform is an operating system and an architecture in Go's words.
type platform struct{ os, arch string }

func parsePlatform(text string) (platform, error) {
	os, arch, found := strings.Cut(text, "/")
	if !found {
		return platform{}, fmt.Errorf("platform %q is not of the form linux/amd64", text)
	}

	return platform{os, arch}, nil
}

func parsePlatforms(list string) ([]platform, error) {
	var all []platform

	for text := range strings.SplitSeq(list, ",") {
		p, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}

		all = append(all, p)
	}

	return all, nil
}

// compile builds a program of the module without a trace of the machine in it.
func compile(ctx context.Context, pkg, out, version string, p platform) error {
	cmd := exec.CommandContext(
		ctx,
		"go",
		"build",
		"-trimpath",
		"-buildvcs=false",
		"-ldflags",
		"-s -w -X main.version="+version,
		"-o",
		out,
		pkg,
	)

	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w\n%s", pkg, p.os, p.arch, err, text)
	}

	return nil
}

// operatorFiles are all files of the operator's image.
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

	return []image.File{
		{Path: "operator", Data: program, Mode: 0o755},
		{
			Path: "etc/passwd",
			Data: []byte("root:x:0:0:root:/:/sbin/nologin\ncapstan:x:" + user + ":" + user + ":capstan:/tmp:/sbin/nologin\n"),
			Mode: 0o644,
		},
		{Path: "etc/group", Data: []byte("root:x:0:\ncapstan:x:" + user + ":\n"), Mode: 0o644},
		{Path: "etc/ssl/certs/ca-certificates.crt", Data: roots(), Mode: 0o644},
		{Path: "tmp", Mode: 0o1777, Dir: true},
	}, nil
}

// roots are the certificate authorities that Mozilla trusts, as a pinned Go module has them.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
	}

	return out.Bytes()
}

// writeImage makes the operator's image as an OCI archive and gives its digest.
func writeImage(ctx context.Context, file, version string, platforms []platform) (string, error) {
	created, err := commitTime(ctx)
	if err != nil {
		return "", err
	}

	var images []image.Image

	for _, p := range platforms {
		files, err := operatorFiles(ctx, version, p.arch)
		if err != nil {
			return "", err
		}

		images = append(images, image.Image{
			Platform: ocispec.Platform{OS: p.os, Architecture: p.arch}, Files: files, Created: created,
			Config: ocispec.ImageConfig{
				User: user + ":" + user, Entrypoint: []string{"/operator"}, WorkingDir: "/",
				Labels: map[string]string{
					ocispec.AnnotationTitle: "capstan", ocispec.AnnotationVersion: version, ocispec.AnnotationLicenses: "Apache-2.0",
					ocispec.AnnotationSource: "https://github.com/capstan-project/capstan",
				},
			},
		})
	}

	return image.Write(ctx, file, repository+":"+version, images...)
}

// writeRootFS writes the files of the operator's image into a folder, for the Dockerfile.
func writeRootFS(ctx context.Context, folder, version, arch string) error {
	if arch == "" {
		arch = runtime.GOARCH
	}

	files, err := operatorFiles(ctx, version, arch)
	if err != nil {
		return err
	}

	for _, f := range files {
		target := filepath.Join(folder, filepath.FromSlash(f.Path))
		if f.Dir {
			err = os.MkdirAll(target, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
			err = os.WriteFile(target, f.Data, 0o600)
		}

		if err != nil {
			return err
		}

		if err := os.Chmod(target, os.FileMode(f.Mode&0o777)|sticky(f.Mode)); err != nil {
			return err
		}
	}

	return nil
}

// sticky translates the bit that keeps users from removing each other's files.
func sticky(mode int64) os.FileMode {
	if mode&0o1000 != 0 {
		return os.ModeSticky
	}

	return 0
}

// commitTime is when the checked out commit was made; SOURCE_DATE_EPOCH wins, where there is no
// repository.
func commitTime(ctx context.Context) (time.Time, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		text, err := git(ctx, "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, fmt.Errorf(
				"find the time of the commit; without a repository, set SOURCE_DATE_EPOCH to seconds since 1970: %w",
				err,
			)
		}

		seconds = text
	}

	var unix int64
	if _, err := fmt.Sscan(seconds, &unix); err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", seconds)
	}

	return time.Unix(unix, 0).UTC(), nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}

	return strings.TrimSpace(string(out)), nil
}
