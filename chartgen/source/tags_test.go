package source

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/fakesource"
)

// TestTagsWithoutV checks that the versions of a project may be tagged as 1.0.0, or some so and some as
// v1.0.0, wherever they are published.
func TestTagsWithoutV(t *testing.T) {
	f := &fakesource.Server{}
	for _, tag := range []string{"1.0.0", "1.1.0", "v1.1.0", "1.2.0"} {
		f.Publish("owner/tiny", tag, releaseFiles(tag))
	}

	NewWithT(t).Expect(f.Start()).To(Succeed())
	t.Cleanup(func() { _ = f.Stop() })

	for name, test := range map[string]struct {
		address string
		// lists reports whether the server lists versions.
		lists bool
		// origin of 1.0.0, after the server's.
		origin string
	}{
		"GitHub": {
			address: "/owner/tiny/releases",
			lists:   true,
			origin:  "/owner/tiny/releases/download/1.0.0/infrastructure-components.yaml",
		},
		"GitLab": {
			address: "/api/v4/projects/owner%2Ftiny/packages/generic/package/latest/infrastructure-components.yaml",
			lists:   true,
			origin:  "/api/v4/projects/owner%2Ftiny/packages/generic/package/1.0.0/infrastructure-components.yaml",
		},
		"a folder of versions": {
			address: "/plain/owner/tiny",
			origin:  "/plain/owner/tiny/1.0.0/infrastructure-components.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			open := func() *Source {
				w, err := NewWebsite(f.URL()+test.address, infrastructure, nil)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())

				return w
			}

			for requested, components := range map[string]string{
				"1.0.0":  "infrastructure 1.0.0",
				"v1.0.0": "infrastructure 1.0.0",
				"v1.1.0": "infrastructure v1.1.0",
				"1.1.0":  "infrastructure v1.1.0",
			} {
				g := NewWithT(t)
				w := open()
				version, err := w.Resolve(t.Context(), Request{Version: requested})
				g.Expect(err).NotTo(HaveOccurred())

				b, err := w.Fetch(t.Context(), version)
				g.Expect(err).NotTo(HaveOccurred(), requested)
				g.Expect(string(b.Components)).To(Equal(components), requested)
				g.Expect(b.Templates).NotTo(BeEmpty(), requested)

				if version.Name == "v1.0.0" {
					g.Expect(b.Source).To(Equal(f.URL() + test.origin))
				}
			}

			if !test.lists {
				return
			}

			g := NewWithT(t)
			w := open()
			versions, err := w.Versions(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(versions).To(HaveExactElements(
				HaveField("Name", "v1.2.0"), HaveField("Name", "v1.1.0"), HaveField("Name", "v1.0.0")))
			g.Expect(versions[2].Origin).To(Equal(w.exact("1.0.0").Origin), "it does not depend on how the version was found")

			newest, err := w.Resolve(t.Context(), Request{})
			g.Expect(err).NotTo(HaveOccurred())

			before := len(f.Requests("/1.2.0/"))
			b, err := w.Fetch(t.Context(), newest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(b.Components)).To(Equal("infrastructure 1.2.0"))
			g.Expect(f.Requests("/v1.2.0/")).To(BeEmpty(), "a tag that was listed is not guessed")
			g.Expect(len(f.Requests("/1.2.0/"))).To(BeNumerically(">", before))
		})
	}
}

func TestNoVersionIsPublished(t *testing.T) {
	g := NewWithT(t)
	f := &fakesource.Server{}
	f.Publish("owner/tiny", "v1.0.0", nil)
	f.Publish("owner/tiny", "v1.1.0", nil)
	g.Expect(f.Start()).To(Succeed())
	t.Cleanup(func() { _ = f.Stop() })

	w, err := NewWebsite(f.URL()+"/owner/tiny/releases", infrastructure, nil)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = w.Resolve(t.Context(), Request{})
	g.Expect(IsNotFound(err)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring("/owner/tiny/releases/download/v1.1.0/metadata.yaml")))
}

func TestDirectoryWithoutV(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "infrastructure-tiny")

	for _, folder := range []string{"1.0.0", "v1.1.0", "v1.2", "v2", "latest"} {
		g.Expect(os.MkdirAll(filepath.Join(dir, folder), 0o755)).To(Succeed())
	}

	for name, data := range releaseFiles("1.0.0") {
		g.Expect(os.WriteFile(filepath.Join(dir, "1.0.0", name), data, 0o600)).To(Succeed())
	}

	d, err := NewDirectory(dir)
	g.Expect(err).NotTo(HaveOccurred())

	versions, err := d.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(HaveExactElements(HaveField("Name", "v1.1.0"), HaveField("Name", "v1.0.0")))

	b, err := d.Fetch(t.Context(), versions[1])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(b.Components)).To(Equal("infrastructure 1.0.0"))

	g.Expect(os.MkdirAll(filepath.Join(dir, "v1.0.0"), 0o755)).To(Succeed())

	_, err = d.Versions(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("1.0.0 and v1.0.0")))
}
