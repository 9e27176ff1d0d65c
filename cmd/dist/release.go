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

// builder builds the files of a release in a folder.
type builder struct {
	folder    string
	version   string // with the leading v
	platforms []platform
	log       io.Writer

	// modules are the dependencies with their licenses; the step licenses sets them.
	modules []module

	// archives are the packed programs; the step programs sets them.
	archives []archive
}

// release builds all files of a release. It deletes the present content of the folder.
func release(ctx context.Context, b *builder) error {
	number, found := strings.CutPrefix(b.version, "v")
	if _, err := semver.StrictNewVersion(number); err != nil || !found {
		return fmt.Errorf("version %q is not a semantic version such as v1.2.3: set one with VERSION=", b.version)
	}

	if err := errors.Join(os.RemoveAll(b.folder), os.MkdirAll(b.folder, 0o755)); err != nil {
		return err
	}

	for _, step := range []func(context.Context) error{
		b.licenses,
		b.programs,
		b.image,
		b.manifests,
		b.krew,
		b.changelog,
		b.checksums,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	return nil
}

// write writes a file to the folder and logs its name and size.
func (b *builder) write(name string, data []byte) error {
	fmt.Fprintf(b.log, "  %-36s %8.1f kB\n", name, float64(len(data))/1e3)
	return os.WriteFile(filepath.Join(b.folder, name), data, 0o644)
}

// licenses checks the licenses of all dependencies.
func (b *builder) licenses(ctx context.Context) (err error) {
	b.modules, err = licenses(ctx)
	return err
}

// programs builds and packs the capstan program for each platform, and writes its bill of materials.
func (b *builder) programs(ctx context.Context) error {
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	for i, p := range b.platforms {
		file := filepath.Join(dir, "capstan")
		if err := compile(ctx, "./cmd/capstan", file, b.version, p); err != nil {
			return err
		}

		program, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		packed, err := pack(p, program, license, notices(b.modules))
		if err != nil {
			return err
		}

		b.archives = append(b.archives, packed)
		if err := b.write(packed.name, packed.data); err != nil {
			return err
		}

		if i == 0 {
			if err := b.writeSBOM(file, "capstan"); err != nil {
				return err
			}
		}
	}

	return nil
}

// image builds the operator's image for the Linux platforms, and its bill of materials.
func (b *builder) image(ctx context.Context) error {
	linux := slices.DeleteFunc(slices.Clone(b.platforms), func(p platform) bool { return p.os != "linux" })
	if len(linux) == 0 {
		return nil
	}

	file := filepath.Join(b.folder, "capstan-image.tar")

	digest, err := writeImage(ctx, file, b.version, linux)
	if err != nil {
		return err
	}

	info, err := os.Stat(file)
	if err != nil {
		return err
	}

	fmt.Fprintf(b.log, "  %-36s %8.1f kB %s\n", filepath.Base(file), float64(info.Size())/1e3, digest)

	program, err := os.CreateTemp("", "operator-")
	if err != nil {
		return err
	}
	defer os.Remove(program.Name())

	if err := errors.Join(
		program.Close(),
		compile(ctx, "./cmd/operator", program.Name(), b.version, linux[0]),
	); err != nil {
		return err
	}

	return b.writeSBOM(program.Name(), "capstan-operator")
}

// writeSBOM writes the bill of materials of a program.
func (b *builder) writeSBOM(program, name string) error {
	data, err := sbom(program, name, b.version, b.modules)
	if err != nil {
		return err
	}

	return b.write(name+".cdx.json", data)
}

// changelog writes what has changed in the version, from the change log.
func (b *builder) changelog(context.Context) error {
	all, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}

	section, err := changesOf(string(all), b.version)
	if err != nil {
		return err
	}

	return b.write("CHANGELOG.md", []byte(section))
}

// changesOf returns the section of a version in the change log, with links that work elsewhere. A prerelease has the
// newest section.
func changesOf(all, version string) (string, error) {
	const heading = "\n## "

	sections := strings.Split(all, heading)[1:]

	found := slices.IndexFunc(sections, func(section string) bool { return strings.HasPrefix(section, version+"\n") })
	if found < 0 && strings.Contains(version, "-") {
		found = 0
	}

	if found < 0 || len(sections) == 0 {
		return "", fmt.Errorf("CHANGELOG.md has no section %q: write it before the release", "## "+version)
	}

	_, text, _ := strings.Cut(sections[found], "\n")
	text = strings.ReplaceAll(text, "](docs/", "](https://github.com/capstan-project/capstan/blob/"+version+"/docs/")

	return fmt.Sprintf("# %s\n\n%s\n", version, strings.TrimSpace(text)), nil
}

// checksums writes the SHA-256 checksums of all files, in the format of sha256sum.
func (b *builder) checksums(context.Context) error {
	entries, err := os.ReadDir(b.folder)
	if err != nil {
		return err
	}

	var out bytes.Buffer

	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(b.folder, entry.Name()))
		if err != nil {
			return err
		}

		fmt.Fprintf(&out, "%s  %s\n", checksum(data), entry.Name())
	}

	return b.write("checksums.txt", out.Bytes())
}

// checksum returns the SHA-256 of data in hexadecimal.
func checksum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
