package managers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// unpublished is the version with which modules of one repository require each other, besides a replace directive that
// applies only in the repository. The version to build with is the one of the module that requires them.
const unpublished = "v0.0.0-00010101000000-000000000000"

// origin is where a program can be built from. A version of the program is in the same version of the module.
type origin struct {
	module string
	// folders are where versions of the module have the program. The first one that exists is used.
	folders []string
}

// build builds a program into the cache.
func (f Finder) build(ctx context.Context, file string, from origin, version string) error {
	folder, err := os.MkdirTemp("", "manager-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)

	b := builder{folder: folder, version: version}

	source, err := b.require(ctx, from.module)
	if err != nil {
		return err
	}

	pkg := from.module

	for _, candidate := range from.folders {
		if _, err := os.Stat(filepath.Join(source, candidate, "main.go")); err == nil {
			pkg = path.Join(from.module, candidate)
			break
		}
	}

	if err := os.MkdirAll(f.Cache, 0o755); err != nil {
		return err
	}

	fmt.Fprintf(f.Log, "building %s from module %s %s\n", file, from.module, version)

	program := filepath.Join(f.Cache, file)
	partial := program + ".partial"

	if err := b.compile(ctx, pkg, partial); err != nil {
		return err
	}

	return os.Rename(partial, program)
}

// builder builds a program in a module of its own, which requires a version of the program's module.
type builder struct {
	folder, version string
	required        []string
}

// require downloads a module, and the modules of its repository that it requires. It returns the module's folder.
func (b *builder) require(ctx context.Context, module string) (string, error) {
	b.required = append(b.required, fmt.Sprintf("require %s %s\n", module, b.version))

	out, err := b.goCommand(ctx, "mod", "download", "-json", module+"@"+b.version)

	var downloaded struct{ Dir, GoMod, Error string }
	if json.Unmarshal(out, &downloaded) == nil && downloaded.Error != "" {
		return "", errors.New(downloaded.Error)
	} else if err != nil {
		return "", err
	}

	if out, err = b.goCommand(ctx, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return "", err
	}

	var requirements struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &requirements); err != nil {
		return "", err
	}

	for _, r := range requirements.Require {
		if r.Version != unpublished {
			continue
		}

		if _, err := b.require(ctx, r.Path); err != nil {
			return "", err
		}
	}

	return downloaded.Dir, nil
}

// compile builds a package of the required modules. Without the line with Go's version, the go command would download
// thousands of modules that it does not need.
func (b *builder) compile(ctx context.Context, pkg, out string) error {
	text := "module managers\n\ngo 1.26.0\n\n" + strings.Join(b.required, "")
	if err := os.WriteFile(filepath.Join(b.folder, "go.mod"), []byte(text), 0o600); err != nil {
		return err
	}

	_, err := b.goCommand(ctx, "build", "-mod=mod", "-gcflags=all=-dwarf=false", "-ldflags=-s -w",
		"-o", out, pkg)

	return err
}

// goCommand runs the go command in the folder, and returns its standard output. The error contains the end of its
// standard error.
func (b *builder) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.folder

	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-trimpath")

	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = errors.New(strings.Join(lines[max(0, len(lines)-2):], " "))
	}

	return out, err
}
