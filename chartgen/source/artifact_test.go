package source_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/image"
)

var docker = source.Provider(v1alpha2.InfrastructureProviderType, "docker")

// sampleFile reads a file of the sample provider docker.
func sampleFile(t *testing.T, version, file string) string {
	t.Helper()

	data, err := os.ReadFile(filepath.Join("../../test/data/providers/infrastructure-docker", version, file))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(data)
}

// runRegistry starts an empty registry and returns the first part of addresses in it.
func runRegistry(t *testing.T) (*oci.Client, string) {
	t.Helper()
	g := NewWithT(t)
	r, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	c, err := oci.NewClient(transport.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	return c, "http://" + r.Address + "/capi/"
}

// pushFiles pushes files as `oras push` does.
func pushFiles(t *testing.T, c *oci.Client, address string, files map[string]string) oci.Reference {
	t.Helper()
	g := NewWithT(t)
	ref, err := oci.Parse(address)
	g.Expect(err).NotTo(HaveOccurred())

	var layers []image.Blob

	for name, text := range files {
		layer := image.NewBlob("application/vnd.test.file", []byte(text))
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		layers = append(layers, layer)
	}

	desc, err := image.PushArtifact(t.Context(), c, ref, "application/vnd.acme.config", layers...)
	g.Expect(err).NotTo(HaveOccurred())

	return ref.WithDigest(desc.Digest)
}

func newArtifact(t *testing.T, c *oci.Client, address string, o source.OCIOptions) *source.Source {
	t.Helper()

	o.Access = func(context.Context) (source.Access, error) {
		if o.Trust != nil {
			return source.Access{Client: c, Verify: refuse}, nil
		}

		return source.Access{Client: c}, nil
	}
	a, err := source.NewArtifact(address, docker, o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return a
}

func TestArtifactFetch(t *testing.T) {
	c, base := runRegistry(t)

	metadata := sampleFile(t, "v1.0.0", "metadata.yaml")
	components := sampleFile(t, "v1.0.0", "infrastructure-components.yaml")

	for name, files := range map[string]map[string]string{
		"type":  {"metadata.yaml": metadata, "infrastructure-components.yaml": components},
		"plain": {"metadata.yaml": metadata, "components.yaml": components},
		"version": {
			"infrastructure-docker-v1.0.0-metadata.yaml":   metadata,
			"infrastructure-docker-v1.0.0-components.yaml": components,
		},
		"version-without-v": {
			"infrastructure-docker-1.0.0-metadata.yaml":   metadata,
			"infrastructure-docker-1.0.0-components.yaml": components,
			"metadata.yaml":   "wrong",
			"components.yaml": "wrong",
		},
		"shared": {
			"infrastructure-docker-v1.0.0-metadata.yaml": metadata,
			"metadata.yaml":                  "wrong",
			"bootstrap-components.yaml":      "wrong",
			"infrastructure-components.yaml": components,
			"components.yaml":                "wrong",
		},
		"templates": {
			"metadata.yaml":            metadata,
			"components.yaml":          components,
			"cluster-template.yaml":    "a",
			"clusterclass-x.yaml":      "b",
			"../cluster-template.yaml": "c",
			"README":                   "d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pinned := pushFiles(t, c, base+name+":v1.0.0", files)
			pushFiles(t, c, base+name+":v1.1.0", files)
			pushFiles(t, c, base+name+":latest", files)
			a := newArtifact(t, c, base+name, source.OCIOptions{})
			versions, err := a.Versions(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(versions).To(HaveLen(2))
			picked, err := source.Pick(versions, "v1.0.0", "")
			g.Expect(err).NotTo(HaveOccurred())
			b, err := a.Fetch(t.Context(), picked)
			g.Expect(err).NotTo(HaveOccurred())

			want := &bundle.Bundle{
				Provider:   docker,
				Version:    "v1.0.0",
				Source:     pinned.String(),
				Components: []byte(components),
				Metadata:   []byte(metadata),
			}
			if name == "templates" {
				want.Templates = []bundle.File{
					{Name: "cluster-template.yaml", Data: []byte("a")},
					{Name: "clusterclass-x.yaml", Data: []byte("b")},
				}
			}

			g.Expect(b.Chart).To(BeNil())
			g.Expect(b.Bundle).To(Equal(want))
		})
	}
}

func TestArtifactWithSeveralVersions(t *testing.T) {
	g := NewWithT(t)
	c, base := runRegistry(t)
	components := sampleFile(t, "v1.0.0", "infrastructure-components.yaml")
	pushFiles(t, c, base+"several:v1.0.0", map[string]string{
		"metadata.yaml": sampleFile(t, "v1.0.0", "metadata.yaml"),
		"infrastructure-docker-v1.0.0-components.yaml": components,
		"infrastructure-docker-v1.1.0-components.yaml": components + "# v1.1.0\n",
		"infrastructure-docker-1.3.0-components.yaml":  components + "# v1.3.0\n",
		"components.yaml": "of any version",
	})

	a := newArtifact(t, c, base+"several:v1.0.0", source.OCIOptions{})

	for requested, want := range map[string]string{
		"": components, "v1.0.0": components, "v1.1.0": components + "# v1.1.0\n", "v1.3.0": components + "# v1.3.0\n",
	} {
		version, err := a.Resolve(t.Context(), source.Request{Version: requested})
		g.Expect(err).NotTo(HaveOccurred())

		b, err := a.Fetch(t.Context(), version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(b.Components)).To(Equal(want))
	}

	_, err := a.Fetch(t.Context(), source.Version{Name: "v1.2.0"})
	g.Expect(source.IsNotFound(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("version v1.2.0 is not available")))
}

func TestArtifactErrors(t *testing.T) {
	c, base := runRegistry(t)
	files := map[string]string{
		"metadata.yaml":                  sampleFile(t, "v1.0.0", "metadata.yaml"),
		"infrastructure-components.yaml": sampleFile(t, "v1.0.0", "infrastructure-components.yaml"),
	}
	pinned := pushFiles(t, c, base+"good:v1.0.0", files)
	pushFiles(t, c, base+"good:latest", files)
	pushFiles(t, c, base+"bad:v1.0.0", map[string]string{"README": "x"})
	pushFiles(t, c, base+"untitled:v1.0.0", map[string]string{"": "as in any container image"})
	pushFiles(t, c, base+"empty:v1.0.0", nil)
	pushFiles(t, c, base+"half:v1.0.0", map[string]string{"metadata.yaml": files["metadata.yaml"]})

	other := "sha256:" + strings.Repeat("0", 64)
	for name, test := range map[string]struct {
		address, version string
		options          source.OCIOptions
		kind             transport.Kind
		message          string
	}{
		"the version as tag":                    {address: "good:v1.0.0", version: "v1.0.0"},
		"any tag, with the version in the spec": {address: "good:latest", version: "v1.0.0"},
		"a digest":                              {address: "good@" + pinned.Digest.String(), version: "v1.0.0"},
		"the required digest": {
			address: "good",
			version: "v1.0.0",
			options: source.OCIOptions{Digest: pinned.Digest.String()},
		},
		"another digest": {
			address: "good",
			version: "v1.0.0",
			options: source.OCIOptions{Digest: other},
			kind:    transport.Unverified,
			message: "asks for " + other,
		},
		"another version than the tag": {
			address: "good:v1.0.0",
			version: "v2.0.0",
			kind:    transport.NotFound,
			message: "is v1.0.0",
		},
		"a missing version": {
			address: "good",
			version: "v2.0.0",
			kind:    transport.NotFound,
			message: "good:2.0.0, nor the tag v2.0.0; copy the version there",
		},
		"a missing repository": {
			address: "none",
			version: "v2.0.0",
			kind:    transport.NotFound,
			message: "none:2.0.0, nor the tag v2.0.0; copy the version there",
		},
		"no components": {
			address: "half",
			version: "v1.0.0",
			kind:    transport.Invalid,
			message: "has no *-components.yaml, but only metadata.yaml; add that of v1.0.0",
		},
		"no files of a release": {
			address: "bad",
			version: "v1.0.0",
			kind:    transport.Invalid,
			message: "but only README",
		},
		"layers without titles": {
			address: "untitled",
			version: "v1.0.0",
			kind:    transport.Invalid,
			message: "has no *-components.yaml, nor any other file of a release; add that of v1.0.0",
		},
		"no layers": {
			address: "empty",
			version: "v1.0.0",
			kind:    transport.Invalid,
			message: "has no *-components.yaml, nor any other file of a release; add that of v1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := newArtifact(t, c, base+test.address, test.options)

			_, err := a.Fetch(t.Context(), source.Version{Name: test.version})
			if test.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(transport.Is(err, test.kind)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}

	_, err := newArtifact(t, c, base+"none", source.OCIOptions{}).Versions(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("if the registry does not list tags, set spec.version")))

	t.Run("a tag that is not a version", func(t *testing.T) {
		_, err := newArtifact(t, c, base+"good:latest", source.OCIOptions{}).Versions(t.Context())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("set spec.version")))
	})
}

// TestDamagedVersion: a version of which the registry has lost something is an error, and no older one is chosen.
func TestDamagedVersion(t *testing.T) {
	dir := t.TempDir()
	server, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: dir})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Stop)

	c, err := oci.NewClient(transport.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	base := "http://" + server.Address + "/capi/"
	metadata := func(version string) string { return sampleFile(t, "v1.0.0", "metadata.yaml") + "# " + version + "\n" }
	access := source.OCIOptions{Access: func(context.Context) (source.Access, error) {
		return source.Access{Client: c}, nil
	}}

	push := func(g *WithT, kind, version string) (lost digest.Digest) {
		ref, err := oci.Parse(base + kind + ":" + version)
		g.Expect(err).NotTo(HaveOccurred())

		if kind == "artifact" {
			pushFiles(t, c, ref.String(), map[string]string{"metadata.yaml": metadata(version)})
			return digest.FromString(metadata(version))
		}

		layer := image.Layer(
			image.Entry{Name: "capi-manifests/metadata.yaml", Content: metadata(version)},
			image.Entry{Name: "capi-manifests/components.yaml", Content: "{}"},
		)
		_, err = image.Push(t.Context(), c, ref, nil, layer)
		g.Expect(err).NotTo(HaveOccurred())

		return digest.FromBytes(layer)
	}

	for kind, open := range map[string]func(string, bundle.Provider, source.OCIOptions) (*source.Source, error){
		"artifact": source.NewArtifact, "image": source.NewImage,
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			push(g, kind, "v1.0.0")
			lost := push(g, kind, "v1.1.0")
			resolve := func() error {
				s, err := open(base+kind, docker, access)
				g.Expect(err).NotTo(HaveOccurred())

				version, err := s.Resolve(t.Context(), source.Request{Version: "~1"})
				g.Expect(version.Name).To(Or(Equal("v1.1.0"), BeEmpty()))

				return err
			}

			g.Expect(resolve()).To(Succeed())

			blob := filepath.Join(dir, "data/docker/registry/v2/blobs/sha256", lost.Encoded()[:2], lost.Encoded())
			g.Expect(os.RemoveAll(blob)).To(Succeed())

			g.Expect(resolve()).To(MatchError(HaveSuffix("the registry has lost a part of it; push the version again")))
		})
	}
}

func TestArtifactChart(t *testing.T) {
	c, base := runRegistry(t)
	made, err := chartgen.Build(&bundle.Bundle{
		Provider:   docker,
		Version:    "v1.0.0",
		Source:     "test",
		Components: []byte(sampleFile(t, "v1.0.0", "infrastructure-components.yaml")),
		Metadata:   []byte(sampleFile(t, "v1.0.0", "metadata.yaml")),
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	push := func(g *WithT, place string, content *chart.Chart) *oci.Chart {
		ref, err := oci.Parse(base + place)
		g.Expect(err).NotTo(HaveOccurred())
		pushed, err := image.PushChart(t.Context(), c, ref, content)
		g.Expect(err).NotTo(HaveOccurred())

		return pushed
	}

	t.Run("a provider's", func(t *testing.T) {
		g := NewWithT(t)
		pushed := push(g, "capstan:1.0.0", made)

		a := newArtifact(t, c, base+"capstan", source.OCIOptions{})
		versions, err := a.Versions(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(versions).To(HaveExactElements(HaveField("Name", "v1.0.0")))
		release, err := a.Fetch(t.Context(), versions[0])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release.Place).To(Equal(pushed.Reference.String()))
		g.Expect(release.Bundle).To(BeNil())

		archive, err := made.Archive()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release.Chart.Archive()).To(Equal(archive))

		files, err := a.Files(t.Context(), versions[0])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files.Metadata).To(Equal(chartgen.PublishedMetadata(made)))
	})

	t.Run("another one", func(t *testing.T) {
		g := NewWithT(t)
		other, err := chart.New(
			chart.Metadata{APIVersion: "v2", Name: "third-party", Version: "1.0.0"},
			[]chart.File{{Name: "templates/a.yaml", Data: []byte("{}")}},
		)
		g.Expect(err).NotTo(HaveOccurred())
		push(g, "other:1.0.0", other)

		a := newArtifact(t, c, base+"other", source.OCIOptions{})
		_, err = a.Fetch(t.Context(), source.Version{Name: "v1.0.0"})
		g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue())
		g.Expect(err).To(MatchError(And(HavePrefix(base+"other:1.0.0@sha256:"), HaveSuffix(": is the Helm chart "+
			"third-party, which was not built from a provider's components; install it with helm, Flux or Argo CD"))))
	})

	t.Run("another version than its tag", func(t *testing.T) {
		g := NewWithT(t)
		push(g, "lying:2.0.0", made)

		a := newArtifact(t, c, base+"lying", source.OCIOptions{})
		_, err = a.Fetch(t.Context(), source.Version{Name: "v2.0.0"})
		g.Expect(err).To(MatchError(ContainSubstring("is the chart of version v1.0.0, not v2.0.0")))
	})
}
