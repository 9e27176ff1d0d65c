package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// maker makes the files of a release in a folder.
type maker struct {
	folder    string
	version   string // with its v
	platforms []platform
	log       io.Writer
	licensed  []module
	archives  []archive
}

// dist makes a release. What the folder held before is gone then.
func dist(ctx context.Context, log io.Writer, folder, version string, platforms []platform) error {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err != nil ||
		!strings.HasPrefix(version, "v") {
		return fmt.Errorf("version %q is not a semantic version such as v1.2.3: give one with VERSION=", version)
	}

	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}

	m := &maker{folder: folder, version: version, platforms: platforms, log: log}
	for _, step := range []func(context.Context) error{m.licenses, m.programs, m.image, m.manifests, m.krew, m.changelog, m.checksums} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	return nil
}

// write puts a file into the folder and tells of it.
func (m *maker) write(name string, data []byte) error {
	fmt.Fprintf(m.log, "  %-36s %8.1f kB\n", name, float64(len(data))/1e3)
	return os.WriteFile(filepath.Join(m.folder, name), data, 0o644)
}

func (m *maker) licenses(ctx context.Context) (err error) {
	m.licensed, err = licenses(ctx)
	return err
}

// programs packs the command line for each platform.
func (m *maker) programs(ctx context.Context) error {
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	for i, p := range m.platforms {
		file := filepath.Join(dir, "capstan")
		if err := compile(ctx, "./cmd/capstan", file, m.version, p); err != nil {
			return err
		}

		program, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		packed, err := pack(p, program, license, notices(m.licensed))
		if err != nil {
			return err
		}

		m.archives = append(m.archives, packed)
		if err := m.write(packed.name, packed.data); err != nil {
			return err
		}

		if i == 0 {
			if err := m.bill(file, "capstan"); err != nil {
				return err
			}
		}
	}

	return nil
}

// image makes the operator's image for the platforms that run containers, and its bill of
// materials.
func (m *maker) image(ctx context.Context) error {
	runnable := slices.DeleteFunc(slices.Clone(m.platforms), func(p platform) bool { return p.os != "linux" })
	if len(runnable) == 0 {
		return nil
	}

	file := filepath.Join(m.folder, "capstan-image.tar")

	digest, err := writeImage(ctx, file, m.version, runnable)
	if err != nil {
		return err
	}

	info, err := os.Stat(file)
	if err != nil {
		return err
	}

	fmt.Fprintf(m.log, "  %-36s %8.1f kB %s\n", filepath.Base(file), float64(info.Size())/1e3, digest)

	program, err := os.CreateTemp("", "operator-")
	if err != nil {
		return err
	}
	defer os.Remove(program.Name())

	if err := errors.Join(
		program.Close(),
		compile(ctx, "./cmd/operator", program.Name(), m.version, runnable[0]),
	); err != nil {
		return err
	}

	return m.bill(program.Name(), "capstan-operator")
}

// bill writes the bill of materials of a program.
func (m *maker) bill(program, name string) error {
	bill, err := billOfMaterials(program, name, m.version, m.licensed)
	if err != nil {
		return err
	}

	return m.write(name+".cdx.json", bill)
}

// changelog lists the commits since the last tag, newest first.
func (m *maker) changelog(ctx context.Context) error {
	commits := "HEAD"
	if last, err := git(ctx, "describe", "--tags", "--abbrev=0", "HEAD^"); err == nil {
		commits = last + "..HEAD"
	}

	text, err := git(ctx, "log", "--no-merges", "--format=* %s (%h)", commits)
	if err != nil {
		return err
	}

	return m.write("CHANGELOG.md", fmt.Appendf(nil, "# %s\n\n%s\n", m.version, text))
}

// checksums lists the SHA-256 of every file, in the format of sha256sum.
func (m *maker) checksums(context.Context) error {
	entries, err := os.ReadDir(m.folder)
	if err != nil {
		return err
	}

	var out bytes.Buffer

	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(m.folder, entry.Name()))
		if err != nil {
			return err
		}

		fmt.Fprintf(&out, "%s  %s\n", sum(data), entry.Name())
	}

	return m.write("checksums.txt", out.Bytes())
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
