package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// inModule changes to the module's root folder, where the program runs.
func inModule(t *testing.T) *WithT {
	t.Helper()
	t.Chdir("../..")

	return NewWithT(t)
}

func TestImageStarts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the image's program runs only on Linux")
	}

	g := inModule(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "image.tar")

	var out bytes.Buffer

	args := []string{"image", "--version", "v1.2.3", "--platforms", "linux/" + runtime.GOARCH, "--output", file}
	g.Expect(run(t.Context(), args, &out)).To(Succeed())
	g.Expect(out.String()).To(HavePrefix("ghcr.io/capstan-project/capstan:v1.2.3@sha256:"))

	root := filepath.Join(dir, "root")
	config := unpack(t, file, root)
	g.Expect(config.User).To(Equal("65532:65532"))

	cmd := exec.CommandContext(t.Context(), filepath.Join(root, config.Entrypoint[0]), "--version")
	if os.Getuid() == 0 { // run it with only the image's files
		cmd.Path = config.Entrypoint[0]
		cmd.Args[0] = config.Entrypoint[0]
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		g.Expect(os.Chmod(root, 0o755)).To(Succeed())
		g.Expect(os.Chmod(dir, 0o755)).To(Succeed())
	}

	version, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(version))
	g.Expect(string(version)).To(Equal("v1.2.3\n"))

	authorities, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Count(authorities, []byte("BEGIN CERTIFICATE"))).To(BeNumerically(">", 100))
}

// unpack writes the layers of the only image in an OCI archive to a folder and returns the image's
// configuration. It follows the digests from the index down.
func unpack(t *testing.T, file, root string) ocispec.ImageConfig {
	t.Helper()
	g := NewWithT(t)
	blobs := filesOf(t, file)
	blob := func(d ocispec.Descriptor) []byte { return blobs["blobs/sha256/"+d.Digest.Encoded()] }

	var top, index ocispec.Index
	g.Expect(json.Unmarshal(blobs["index.json"], &top)).To(Succeed())
	g.Expect(top.Manifests).To(HaveLen(1))
	g.Expect(json.Unmarshal(blob(top.Manifests[0]), &index)).To(Succeed())

	var manifest ocispec.Manifest
	g.Expect(json.Unmarshal(blob(index.Manifests[0]), &manifest)).To(Succeed())

	var config ocispec.Image
	g.Expect(json.Unmarshal(blob(manifest.Config), &config)).To(Succeed())

	for _, layer := range manifest.Layers {
		unzipped, err := gzip.NewReader(bytes.NewReader(blob(layer)))
		g.Expect(err).NotTo(HaveOccurred())
		extract(t, unzipped, root)
	}

	return config.Config
}

func extract(t *testing.T, layer io.Reader, root string) {
	t.Helper()
	g := NewWithT(t)

	for r := tar.NewReader(layer); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}

		g.Expect(err).NotTo(HaveOccurred())

		target := filepath.Join(root, header.Name)
		if header.Typeflag == tar.TypeDir {
			g.Expect(os.MkdirAll(target, 0o755)).To(Succeed())
			continue
		}

		data, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.MkdirAll(filepath.Dir(target), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(target, data, os.FileMode(header.Mode))).To(Succeed())
	}
}

func filesOf(t *testing.T, file string) map[string][]byte {
	t.Helper()

	data, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return tarFiles(t, bytes.NewReader(data))
}

// tarFiles returns the files in a tar archive.
func tarFiles(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	g := NewWithT(t)
	files := map[string][]byte{}

	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}

		g.Expect(err).NotTo(HaveOccurred())
		files[header.Name], err = io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func TestRelease(t *testing.T) {
	g := inModule(t)
	dir := filepath.Join(t.TempDir(), "dist")
	host := runtime.GOOS + "/" + runtime.GOARCH
	args := []string{"release", "--version", "v0.1.0", "--platforms", host, "--output", dir}
	g.Expect(run(t.Context(), args, io.Discard)).To(Succeed())

	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		g.Expect(err).NotTo(HaveOccurred())

		return data
	}

	for line := range strings.Lines(string(read("checksums.txt"))) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		g.Expect(checksum(read(name))).To(Equal(digest), name)
	}

	program := "capstan_" + strings.Replace(host, "/", "_", 1) + ".tar.gz"
	g.Expect(string(read("capstan.krew.yaml"))).
		To(And(ContainSubstring(checksum(read(program))), ContainSubstring("/v0.1.0/"+program)))
	checkPlugin(t, archive{name: program, program: "capstan", data: read(program)}, "v0.1.0")
	g.Expect(string(read("capstan.cdx.json"))).To(ContainSubstring(`"pkg:golang/sigs.k8s.io/yaml@v`))
	g.Expect(string(read("capstan-operator.cdx.json"))).
		To(ContainSubstring(`"pkg:golang/sigs.k8s.io/controller-runtime@v`))
	g.Expect(string(read("CHANGELOG.md"))).To(HavePrefix("# v0.1.0\n\nThe first release.\n\n* "))

	chart, err := loader.LoadArchive(bytes.NewReader(read("capstan-0.1.0.tgz")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chart.Metadata.AppVersion).To(Equal("v0.1.0"))
	g.Expect(chart.CRDObjects()).To(HaveLen(7))

	kinds := map[string]int{}

	for document := range strings.SplitSeq(string(read("capstan.yaml")), "\n---\n") {
		var object struct{ Kind string }
		g.Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed())
		kinds[object.Kind]++
	}

	g.Expect(kinds).To(HaveKeyWithValue("CustomResourceDefinition", 7))
	g.Expect(kinds).To(HaveKeyWithValue("Namespace", 1))
	g.Expect(kinds).To(HaveKeyWithValue("Deployment", 1))
	g.Expect(string(read("capstan.yaml"))).To(ContainSubstring("image: ghcr.io/capstan-project/capstan:v0.1.0\n"))
}

// TestCompileIsReproducible checks that programs do not depend on settings of the machine that builds them.
func TestCompileIsReproducible(t *testing.T) {
	g := inModule(t)
	dir := t.TempDir()
	build := func(name string) string {
		out := filepath.Join(dir, name)
		g.Expect(compile(t.Context(), "./test/skipped", out, "v0.1.0", platform{"linux", "amd64"})).To(Succeed())

		data, err := os.ReadFile(out)
		g.Expect(err).NotTo(HaveOccurred())

		return checksum(data)
	}
	here := build("here")

	const settings = "GOFLAGS=-gcflags=all=-N\nGOAMD64=v3\nGOFIPS140=latest\n"

	file := filepath.Join(dir, "env")
	g.Expect(os.WriteFile(file, []byte(settings), 0o600)).To(Succeed())
	t.Setenv("GOENV", file)
	t.Setenv("TZ", "Asia/Tokyo")

	g.Expect(build("elsewhere")).To(Equal(here))
}

func TestReleaseVersion(t *testing.T) {
	err := run(t.Context(), []string{"release", "--version", "1.2", "--output", t.TempDir()}, io.Discard)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not a semantic version")))
}

func TestChangesOf(t *testing.T) {
	const all = "# Changes\n\nIntroduction.\n\n## v0.2.0\n\n* [New](docs/new.md)\n\n## v0.1.0\n\n* Old\n"

	for version, want := range map[string]string{
		"v0.2.0":      "# v0.2.0\n\n* [New](https://github.com/capstan-project/capstan/blob/v0.2.0/docs/new.md)\n",
		"v0.1.0":      "# v0.1.0\n\n* Old\n",
		"v0.3.0-rc.1": "# v0.3.0-rc.1\n\n* [New](https://github.com/capstan-project/capstan/blob/v0.3.0-rc.1/docs/new.md)\n",
	} {
		g := NewWithT(t)
		changes, err := changesOf(all, version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changes).To(Equal(want))
	}

	for _, version := range []string{"v0.3.0", "v0.1"} {
		_, err := changesOf(all, version)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("write it before the release")))
	}
}

func TestRecognizeLicense(t *testing.T) {
	mit := "Permission is hereby granted, free of charge, to any person obtaining a\n" +
		"copy of this software without restriction"

	bsd := "Redistribution and use in source and binary forms, with or without modification"
	for _, test := range []struct {
		text, refused string
		ids           []string
	}{
		{text: "Apache License\n   Version 2.0, January 2004", ids: []string{"Apache-2.0"}},
		{text: mit, ids: []string{"MIT"}},
		{text: bsd, ids: []string{"BSD-2-Clause"}},
		{text: bsd + "\nto endorse or promote products", ids: []string{"BSD-3-Clause"}},
		{text: mit + "\n" + bsd, ids: []string{"MIT", "BSD-2-Clause"}},
		{text: "Mozilla Public License, version 2.0 … GNU General Public License", ids: []string{"MPL-2.0"}},
		{text: "GNU GENERAL PUBLIC LICENSE Version 3", refused: "GPL"},
		{text: "GNU Lesser General Public License", refused: "LGPL"},
		{text: "Business Source License 1.1", refused: "BUSL"},
		{text: "Do what you like"},
	} {
		g := NewWithT(t)
		ids, reason := recognize([]byte(test.text))
		g.Expect(ids).To(Equal(test.ids), test.text)
		g.Expect(reason).To(HavePrefix(test.refused), test.text)
	}
}

func TestModuleLicenses(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	m := module{Path: "example.org/m", Version: "v1.0.0"}
	g.Expect(m.read(dir)).To(MatchError(ContainSubstring("none is recognized")))
	g.Expect(os.WriteFile(filepath.Join(dir, "COPYING"), []byte("GNU Affero General Public License"), 0o600)).To(Succeed())
	g.Expect(m.read(dir)).To(MatchError(ContainSubstring("not allowed (AGPL")))
}
