package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// krewManifest has the fields of a plugin manifest that the release uses.
type krewManifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// TestKrewManifest checks the rules that krew and its index have for manifests, for all platforms of a release.
func TestKrewManifest(t *testing.T) {
	g := NewWithT(t)
	b := &builder{folder: t.TempDir(), version: "v1.2.3", log: io.Discard}

	platforms, err := parsePlatforms(strings.Join(releasePlatforms, ","))
	g.Expect(err).NotTo(HaveOccurred())

	for _, p := range platforms {
		packed, err := pack(p, []byte("program"), []byte("license"), []byte("notices"))
		g.Expect(err).NotTo(HaveOccurred())

		b.archives = append(b.archives, packed)
	}

	g.Expect(b.krew(t.Context())).To(Succeed())
	data, err := os.ReadFile(filepath.Join(b.folder, "capstan.krew.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	var m krewManifest
	g.Expect(yaml.UnmarshalStrict(data, &m)).To(Succeed())
	g.Expect(m.APIVersion).To(Equal("krew.googlecontainertools.github.com/v1alpha2"))
	g.Expect(m.Kind).To(Equal("Plugin"))
	g.Expect(m.Metadata.Name).To(Equal("capstan"))

	_, err = semver.StrictNewVersion(strings.TrimPrefix(m.Spec.Version, "v"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Spec.Version).To(HavePrefix("v"))
	g.Expect(m.Spec.Homepage).To(HavePrefix("https://"))
	g.Expect(m.Spec.Description).NotTo(BeEmpty())
	g.Expect(len(m.Spec.ShortDescription)).To(And(BeNumerically(">", 0), BeNumerically("<=", 50)))
	g.Expect(m.Spec.ShortDescription).NotTo(ContainSubstring("\n"))
	g.Expect(m.Spec.ShortDescription).NotTo(HaveSuffix("."))

	g.Expect(m.Spec.Platforms).To(HaveLen(len(platforms)))

	for i, p := range m.Spec.Platforms {
		packed := b.archives[i]
		g.Expect(p.Selector.MatchLabels).To(Equal(map[string]string{"os": platforms[i].os, "arch": platforms[i].arch}))
		g.Expect(p.SHA256).To(And(MatchRegexp("^[a-f0-9]{64}$"), Equal(checksum(packed.data))))
		g.Expect(p.URI).To(And(HavePrefix(downloads+"v1.2.3/"), HaveSuffix(packed.name)))
		g.Expect(p.URI).To(MatchRegexp(`\.(tar\.gz|zip)$`), "krew unpacks no other formats")

		files := unpackArchive(t, packed)
		g.Expect(files).To(HaveKeyWithValue(p.Bin, []byte("program")))
		g.Expect(files).To(HaveKey("LICENSE"), "krew's index requires it")
	}
}

// unpackArchive returns the files in an archive.
func unpackArchive(t *testing.T, a archive) map[string][]byte {
	t.Helper()
	g := NewWithT(t)
	files := map[string][]byte{}

	if strings.HasSuffix(a.name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(a.data), int64(len(a.data)))
		g.Expect(err).NotTo(HaveOccurred())

		for _, f := range r.File {
			opened, err := f.Open()
			g.Expect(err).NotTo(HaveOccurred())
			files[f.Name], err = io.ReadAll(opened)
			g.Expect(err).NotTo(HaveOccurred())
		}

		return files
	}

	unzipped, err := gzip.NewReader(bytes.NewReader(a.data))
	g.Expect(err).NotTo(HaveOccurred())

	return tarFiles(t, unzipped)
}

// checkPlugin runs the program in this platform's archive as krew installs it: unpacked, and linked as a plugin.
func checkPlugin(t *testing.T, a archive, version string) {
	t.Helper()

	if runtime.GOOS == "windows" {
		t.Skip("links need permissions there")
	}

	g := NewWithT(t)
	dir := t.TempDir()
	program, plugin := filepath.Join(dir, "store"), filepath.Join(dir, "kubectl-capstan")
	g.Expect(os.WriteFile(program, unpackArchive(t, a)[a.program], 0o755)).To(Succeed())
	g.Expect(os.Symlink(program, plugin)).To(Succeed())

	out, err := exec.CommandContext(t.Context(), plugin, "version", "--client", "-o", "yaml").Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(ContainSubstring("version: " + version + "\n"))
}
