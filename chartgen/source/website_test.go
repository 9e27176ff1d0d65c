package source

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/fakesource"
)

var (
	infrastructure = Provider("InfrastructureProvider", "tiny")
	core           = Provider("CoreProvider", "cluster-api")
)

// releaseFiles returns the files of a release.
func releaseFiles(version string) map[string][]byte {
	return map[string][]byte{
		"metadata.yaml": []byte(
			"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
				"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}, {major: 1, minor: 1, contract: v1beta2}]",
		),
		"infrastructure-components.yaml": []byte("infrastructure " + version),
		"core-components.yaml":           []byte("core " + version),
		"cluster-template.yaml":          []byte("{apiVersion: v1, kind: Cluster, metadata: {name: '${NAME}'}}"),
		"clusterclass-quick.yaml":        []byte("{apiVersion: v1, kind: ClusterClass, metadata: {name: quick}}"),
		"cluster-template-other.yaml":    []byte("${EVERYTHING}"),
		"cluster-template.md":            []byte("no YAML"),
	}
}

// newForge starts a server with the releases v1.0.0, v1.1.0 and v1.2.0-rc.1 of owner/tiny, and the
// tag v1.3.0 without files.
func newServer(t *testing.T, change func(*fakesource.Server)) *fakesource.Server {
	t.Helper()

	f := &fakesource.Server{}
	if change != nil {
		change(f)
	}

	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0-rc.1"} {
		f.Publish("owner/tiny", version, releaseFiles(version))
	}

	f.Publish("owner/tiny", "v1.3.0", nil)
	NewWithT(t).Expect(f.Start()).To(Succeed())
	t.Cleanup(func() { _ = f.Stop() })

	return f
}

// withToken returns options with a token for any server.
func withToken(token string) OptionsFunc {
	return func(_ context.Context, server Server) (transport.Options, error) {
		return transport.Options{Credentials: transport.Token(server.Host, token)}, nil
	}
}

func TestWebsiteFetch(t *testing.T) {
	for name, test := range map[string]struct {
		address  string // after the server's
		provider bundle.Provider
		change   func(*fakesource.Server)
		newest   string // the version that an empty request selects; empty if the server cannot list versions
		origin   string // of v1.0.0, after the server's
	}{
		"GitHub": {
			address:  "/owner/tiny/releases/latest/infrastructure-components.yaml",
			provider: infrastructure,
			newest:   "v1.1.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, many pages": {
			address:  "/owner/tiny/releases/latest/infrastructure-components.yaml",
			provider: infrastructure,
			change:   func(f *fakesource.Server) { f.NoGit, f.PerPage = true, 1 },
			newest:   "v1.1.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, without a file": {
			address:  "/owner/tiny/releases",
			provider: infrastructure,
			newest:   "v1.1.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, at a tag": {
			address:  "/owner/tiny/releases/v1.0.0/infrastructure-components.yaml",
			provider: infrastructure,
			newest:   "v1.0.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, download address": {
			address:  "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
			provider: infrastructure,
			newest:   "v1.0.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, page of a release": {
			address:  "/owner/tiny/releases/tag/v1.0.0",
			provider: infrastructure,
			newest:   "v1.0.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, with a token": {
			address:  "/owner/tiny/releases/latest/infrastructure-components.yaml",
			provider: infrastructure,
			change:   func(f *fakesource.Server) { f.Token = "t0ken" },
			newest:   "v1.1.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, a private project": {
			address:  "/owner/tiny/releases/latest/infrastructure-components.yaml",
			provider: infrastructure,
			change:   func(f *fakesource.Server) { f.Token, f.Private = "t0ken", true },
			newest:   "v1.1.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/infrastructure-components.yaml",
		},
		"GitHub, core": {
			address:  "/owner/tiny/releases/latest/core-components.yaml",
			provider: core,
			newest:   "v1.1.0",
			origin:   "/owner/tiny/releases/download/v1.0.0/core-components.yaml",
		},
		"GitLab": {
			address:  "/api/v4/projects/owner%2Ftiny/packages/generic/package/v1.0.0/infrastructure-components.yaml",
			provider: infrastructure,
			newest:   "v1.0.0",
			origin:   "/api/v4/projects/owner%2Ftiny/packages/generic/package/v1.0.0/infrastructure-components.yaml",
		},
		"GitLab, the newest": {
			address:  "/api/v4/projects/owner%2Ftiny/packages/generic/package/latest/infrastructure-components.yaml",
			provider: infrastructure,
			change:   func(f *fakesource.Server) { f.PerPage, f.Token = 1, "t0ken" },
			newest:   "v1.1.0",
			origin:   "/api/v4/projects/owner%2Ftiny/packages/generic/package/v1.0.0/infrastructure-components.yaml",
		},
		"a folder of versions": {
			address:  "/plain/owner/tiny",
			provider: infrastructure,
			origin:   "/plain/owner/tiny/v1.0.0/infrastructure-components.yaml",
		},
		"a folder, with a token": {
			address:  "/plain/owner/tiny/",
			provider: infrastructure,
			change:   func(f *fakesource.Server) { f.Token = "t0ken" },
			origin:   "/plain/owner/tiny/v1.0.0/infrastructure-components.yaml",
		},
		"a file in a version's folder": {
			address:  "/plain/owner/tiny/v1.1.0/infrastructure-components.yaml",
			provider: infrastructure,
			newest:   "v1.1.0",
			origin:   "/plain/owner/tiny/v1.0.0/infrastructure-components.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newServer(t, test.change)
			open := func() *Source {
				w, err := NewWebsite(f.URL()+test.address, test.provider, withToken(f.Token))
				g.Expect(err).NotTo(HaveOccurred())

				return w
			}
			exact, err := open().Resolve(t.Context(), Request{Version: "1.0.0"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.Requests("")).To(BeEmpty(), "an exact version needs no request")
			g.Expect(exact).To(Equal(Version{
				Name:        "v1.0.0",
				Origin:      Origin{Place: f.URL() + test.origin},
				Fingerprint: f.URL() + test.origin,
			}))

			b, err := open().Fetch(t.Context(), exact)
			g.Expect(err).NotTo(HaveOccurred())

			kind, _, _ := strings.Cut(filepath.Base(test.origin), "-")
			g.Expect(string(b.Components)).To(Equal(kind + " v1.0.0"))
			g.Expect(b.Metadata).NotTo(BeEmpty())
			g.Expect(b.Source).To(Equal(exact.Origin.Place))

			var want []string
			if kind == "infrastructure" {
				want = []string{"cluster-template.yaml"}
			}

			if want != nil && !strings.Contains(test.address, "plain") {
				want = []string{"cluster-template-other.yaml", "cluster-template.yaml", "clusterclass-quick.yaml"}
			}

			g.Expect(templateNames(b)).To(Equal(want))
			g.Expect(b.Unlisted).To(BeFalse())

			newest, err := open().Resolve(t.Context(), Request{})
			if test.newest == "" {
				g.Expect(err).
					To(MatchError(ContainSubstring("cannot list versions; set spec.version to an exact version such as v1.13.5")))
				g.Expect(IsNotFound(err)).To(BeTrue())

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(newest.Name).To(Equal(test.newest), "a tag without a release and a pre-release are skipped")

			asked := len(f.Requests(""))
			pinned, err := open().Resolve(t.Context(), Request{Version: "~1", Pinned: "v1.0.0"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pinned.Name).To(Equal("v1.0.0"))
			g.Expect(f.Requests("")).To(HaveLen(asked), "a pinned version that matches needs no request")
		})
	}
}

func templateNames(b *Release) []string {
	var names []string
	for _, t := range b.Templates {
		names = append(names, t.Name)
	}

	return names
}

// TestTemplatesWithoutList checks that the default template needs no list of files, and that the bundle says that there
// may be others.
// tagged is a site that only lists tags.
type tagged struct {
	site

	tags []string
}

func (t tagged) versions(context.Context) ([]string, error) { return t.tags, nil }

func (t tagged) fileURL(tag, name string) string { return tag + "/" + name }

// TestTagsWithAndWithoutV: a version that has two tags is the one with the "v", in whatever order they come.
func TestTagsWithAndWithoutV(t *testing.T) {
	for _, tags := range [][]string{{"1.0.0", "v1.0.0", "1.1.0"}, {"v1.0.0", "1.1.0", "1.0.0"}} {
		g := NewWithT(t)

		found, err := (&website{site: tagged{tags: tags}, components: "x.yaml"}).Versions(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveExactElements(
			And(HaveField("Name", "v1.1.0"), HaveField("ID", "1.1.0")),
			And(HaveField("Name", "v1.0.0"), HaveField("ID", "v1.0.0"), HaveField("Origin.Place", "v1.0.0/x.yaml"))))
	}
}

func TestTemplatesWithoutList(t *testing.T) {
	g := NewWithT(t)
	f := newServer(t, nil)
	fetch := func(version string) *Release {
		w, err := NewWebsite(f.URL()+"/owner/tiny/releases", infrastructure, nil)
		g.Expect(err).NotTo(HaveOccurred())

		b, err := w.Fetch(t.Context(), w.exact(version))
		g.Expect(err).NotTo(HaveOccurred())

		return b
	}

	f.Publish("owner/tiny", "v1.4.0", map[string][]byte{"metadata.yaml": {}, "infrastructure-components.yaml": {}})
	f.Limited.Store(true)

	limited := fetch("v1.0.0")
	g.Expect(templateNames(limited)).To(HaveExactElements("cluster-template.yaml"))
	g.Expect(limited.Unlisted).To(BeTrue())

	none := fetch("v1.4.0")
	g.Expect(none.Templates).To(BeEmpty())
	g.Expect(none.Unlisted).To(BeTrue())

	f.Limited.Store(false)

	complete := fetch("v1.0.0")
	g.Expect(templateNames(complete)).To(HaveExactElements(
		"cluster-template-other.yaml", "cluster-template.yaml", "clusterclass-quick.yaml"))
	g.Expect(complete.Unlisted).To(BeFalse())
}

func TestWebsiteNotFound(t *testing.T) {
	g := NewWithT(t)

	f := newServer(t, nil)
	for _, address := range []string{
		"/owner/tiny/releases",
		"/plain/owner/tiny",
		"/api/v4/projects/owner%2Ftiny/packages/generic/package/latest/x.yaml",
	} {
		w, err := NewWebsite(f.URL()+address, infrastructure, nil)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = w.Fetch(t.Context(), w.exact("v9.9.9"))
		g.Expect(IsNotFound(err)).To(BeTrue())
		g.Expect(err).To(MatchError(And(
			ContainSubstring("v9.9.9/metadata.yaml: the server answers 404"), ContainSubstring("correct the version"))))
	}

	w, err := NewWebsite(f.URL()+"/owner/other/releases", infrastructure, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = w.Resolve(t.Context(), Request{Version: "~1"})
	g.Expect(err).To(MatchError(ContainSubstring("set spec.version to an exact version")))
}
