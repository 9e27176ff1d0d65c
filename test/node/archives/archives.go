// Package archives builds programs, and writes OCI archives with images of them for a real node.
package archives

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/cmd/dist/image"
)

// user is the user of all containers, unless their pod sets another one.
const user = "65532"

// Builder builds packages of the module with this root.
type Builder struct {
	Root string
}

// Operator writes the operator's image, with a version as its tag, to an archive in a folder.
func (b Builder) Operator(ctx context.Context, version, folder string) error {
	return b.run(ctx, "run", "./cmd/dist", "image", "--version", version, "--platforms", "linux/"+runtime.GOARCH,
		"--output", filepath.Join(folder, "operator.tar"))
}

// Program builds a static program from a package, such as "./cmd/capstan".
func (b Builder) Program(ctx context.Context, pkg, out string) error {
	return b.run(ctx, "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
}

func (b Builder) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.Root

	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}

	return nil
}

// Write writes an image to an archive in a folder. It contains a static program and an empty /tmp. The entrypoint
// starts with the program's path in the image.
func Write(ctx context.Context, folder, name, program string, entrypoint ...string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}

	_, err = image.Write(ctx, path(folder, name), name, image.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Files: []image.File{
			{Path: strings.TrimPrefix(entrypoint[0], "/"), Data: data, Mode: 0o755},
			{Path: "tmp", Dir: true, Mode: 0o1777},
		},
		Config: ocispec.ImageConfig{User: user, Entrypoint: entrypoint},
	})

	return err
}

// path returns the path of an image's archive in a folder.
func path(folder, name string) string {
	return filepath.Join(folder, strings.NewReplacer("/", "-", ":", "-").Replace(name)+".tar")
}
