package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/fakesource"
)

// releaseWith returns the files of a release with a number of cluster templates.
func releaseWith(n, size int) map[string][]byte {
	files := releaseFiles("v1.0.0")
	for i := range n {
		files[fmt.Sprintf("cluster-template-%d.yaml", i)] = []byte(strings.Repeat("x", size))
	}

	return files
}

// TestTemplatesAreBounded: a server cannot make the operator read any number of templates.
func TestTemplatesAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string][]byte
		reason string
	}{
		"many templates":      {releaseWith(199, 10), "more than 200 cluster templates"},
		"large templates":     {releaseWith(18, 1<<20), "more than 16 MiB of them"},
		"templates at limits": {releaseWith(197, 10), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := &fakesource.Server{}
			server.Publish("owner/tiny", "v1.0.0", test.files)
			g.Expect(server.Start()).To(Succeed())
			t.Cleanup(func() { _ = server.Stop() })

			site, err := NewWebsite(
				server.URL()+"/owner/tiny/releases/v1.0.0/infrastructure-components.yaml", infrastructure, nil)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = site.Fetch(t.Context(), site.exact("v1.0.0"))
			expectReason(g, err, test.reason)

			folder := filepath.Join(t.TempDir(), "infrastructure-tiny")
			g.Expect(os.MkdirAll(filepath.Join(folder, "v1.0.0"), 0o755)).To(Succeed())

			for file, data := range test.files {
				if file != "core-components.yaml" {
					g.Expect(os.WriteFile(filepath.Join(folder, "v1.0.0", file), data, 0o600)).To(Succeed())
				}
			}

			directory, err := NewDirectory(folder)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = directory.Fetch(t.Context(), Version{Name: "v1.0.0", ID: "v1.0.0"})
			expectReason(g, err, test.reason)
		})
	}
}

func expectReason(g *WithT, err error, reason string) {
	if reason == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}

	g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring(reason)))
}

func TestListsAreBounded(t *testing.T) {
	g := NewWithT(t)

	var releases []gitHubRelease

	err := parseJSON("https://example.com", []byte("["+strings.Repeat("{},", 1<<20)+"{}]"), &releases)
	g.Expect(err).To(MatchError(ContainSubstring("more than 1500000 values")))
	g.Expect(releases).To(BeEmpty())
	g.Expect(checkCount("x", "versions", 10001)).To(MatchError("x: lists more than 10000 versions"))
}

// TestGunzipIsBounded: a gzip bomb is not unpacked.
func TestGunzipIsBounded(t *testing.T) {
	g := NewWithT(t)

	var bomb bytes.Buffer

	w := gzip.NewWriter(&bomb)
	_, err := io.CopyN(w, zeros{}, 1<<28)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Close()).To(Succeed())

	_, err = gunzip(bomb.Bytes())
	g.Expect(err).To(MatchError(ContainSubstring("more than 16 MiB")))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestOwnImageReferencesAreBounded: a short reference that is replaced by a long one does not multiply
// the size of the components.
func TestOwnImageReferencesAreBounded(t *testing.T) {
	g := NewWithT(t)
	ref, err := oci.Parse("oci://registry.example.com/" + strings.Repeat("x", 100))
	g.Expect(err).NotTo(HaveOccurred())

	_, err = pinOwnImage([]byte(strings.Repeat("a ", 2000)), ref, "a")
	g.Expect(err).To(MatchError(ContainSubstring("more than 1000 references")))

	pinned, err := pinOwnImage([]byte("image: a\n"), ref, "a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(pinned)).To(Equal("image: " + ref.Name() + "\n"))
}
