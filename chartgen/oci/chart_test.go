package oci

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
)

const chartName = "infrastructure-x"

// chartRegistry is an empty registry with TLS and a password, and a client for it.
func chartRegistry(t *testing.T, i bed.Implementation) (*bed.Registry, *Client) {
	t.Helper()

	r := runRegistry(t, bed.RegistryOptions{Implementation: i, TLS: true, User: "me", Password: secret})

	return r, client(t, transport.Options{CA: r.CA, Credentials: bed.Login(r.Address, "me", secret)})
}

// testChart is a chart as chartgen makes it, as far as registries look at it.
func testChart(t *testing.T, files ...chart.File) *chart.Chart {
	t.Helper()

	c, err := chart.New(chart.Metadata{
		APIVersion:  "v2",
		Name:        chartName,
		Version:     "1.2.3+build.1",
		AppVersion:  "v1.2.3+build.1",
		Description: "A test",
		Annotations: map[string]string{
			chartgen.AnnotationContentID:       "2-abc",
			chartgen.AnnotationSource:          "directory",
			chartgen.AnnotationChartgenVersion: "2",
		},
	}, files)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

// pushChart pushes a chart, and returns its reference with the digest.
func pushChart(t *testing.T, c *Client, ref Reference, ch *chart.Chart) Reference {
	t.Helper()
	g := NewWithT(t)

	repository := c.Repository(ref)
	desc, err := PackChart(t.Context(), repository, ch)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(repository.Tag(t.Context(), desc, ref.Tag)).To(Succeed())

	return ref.WithDigest(desc.Digest)
}

func TestPackChart(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testPackChart(t, i) })
	}
}

func testPackChart(t *testing.T, i bed.Implementation) {
	r, client := chartRegistry(t, i)
	ref := parse(t, r.Address+"/capi/"+chartName+":"+ChartTag("1.2.3+build.1"))
	c := testChart(t)

	t.Run("a chart is read as it was pushed, with its annotations in the manifest", func(t *testing.T) {
		g := NewWithT(t)
		pushed := pushChart(t, client, ref, c)
		g.Expect(pushed.String()).To(MatchRegexp(`^oci://[^/]+/capi/infrastructure-x:1\.2\.3_build\.1@sha256:`))
		pulled, err := client.PullChart(t.Context(), pushed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pulled.Chart).To(Equal(c))

		artifact, err := client.Artifact(t.Context(), pushed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(artifact.Manifest.Annotations).To(And(
			HaveKeyWithValue(chartgen.AnnotationContentID, "2-abc"),
			HaveKeyWithValue(chartgen.AnnotationSource, "directory"),
			HaveKeyWithValue(chartgen.AnnotationChartgenVersion, "2"),
			HaveKeyWithValue("org.opencontainers.image.created", "1970-01-01T00:00:00Z"),
		))
	})
	t.Run("the manifest depends on the chart alone", func(t *testing.T) {
		elsewhere, other := chartRegistry(t, i)
		again := pushChart(t, other, parse(t, elsewhere.Address+"/x:1"), c)
		NewWithT(t).Expect(again.Digest).To(Equal(pushChart(t, client, ref, c).Digest))
	})
}

// TestChartsOfHelm checks that helm can pull what Capstan pushes, and the reverse.
func TestChartsOfHelm(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testChartsOfHelm(t, i) })
	}
}

func testChartsOfHelm(t *testing.T, i bed.Implementation) {
	g := NewWithT(t)
	r, client := chartRegistry(t, i)
	c := testChart(t, chart.File{Name: "values.yaml", Data: []byte("a: b\n")})
	tag := ":" + ChartTag("1.2.3+build.1")

	pushed, err := client.PullChart(t.Context(), pushChart(t, client, parse(t, r.Address+"/capi/"+chartName+tag), c))
	g.Expect(err).NotTo(HaveOccurred())
	set, err := tools.Find()
	g.Expect(err).NotTo(HaveOccurred())

	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	g.Expect(os.WriteFile(ca, r.CA, 0o600)).To(Succeed())

	helm := func(args ...string) {
		cmd := exec.Command(
			set.Program(tools.Helm()),
			append(args, "--ca-file", ca, "--username", "me", "--password", secret)...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	helm("pull", "oci://"+r.Address+"/capi/"+chartName, "--version", "1.2.3+build.1")

	archive, err := os.ReadFile(filepath.Join(dir, c.Filename()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chart.Digest(archive)).To(Equal(pushed.Digest))

	helm("push", c.Filename(), "oci://"+r.Address+"/by-helm")

	pulled, err := client.PullChart(t.Context(), parse(t, r.Address+"/by-helm/"+chartName+tag))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pulled.Chart).To(Equal(c))
	g.Expect(pulled.Digest).To(Equal(pushed.Digest))
}

// TestIndexedChart: an index with one chart in it is the chart, whatever attestations are beside it.
func TestIndexedChart(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testIndexedChart(t, i) })
	}
}

func testIndexedChart(t *testing.T, i bed.Implementation) {
	r, client := chartRegistry(t, i)
	ref := parse(t, r.Address+"/capi/"+chartName+":1.2.3")
	repository := client.Repository(ref)

	pack := func(ch *chart.Chart) ocispec.Descriptor {
		desc, err := PackChart(t.Context(), repository, ch)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		return ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
	}
	one := pack(testChart(t))
	other := pack(testChart(t, chart.File{Name: "values.yaml", Data: []byte("a: b\n")}))

	attestation, err := oras.PackManifest(t.Context(), repository, oras.PackManifestVersion1_1,
		"application/vnd.in-toto+json", oras.PackManifestOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	ofPlatform := attestation
	ofPlatform.Platform = &ocispec.Platform{OS: "linux", Architecture: "amd64"}

	for name, test := range map[string]struct {
		manifests []ocispec.Descriptor
		message   string
	}{
		"one chart":             {manifests: []ocispec.Descriptor{one}},
		"an attestation behind": {manifests: []ocispec.Descriptor{one, attestation}},
		"an attestation before": {manifests: []ocispec.Descriptor{attestation, one}},
		"two charts": {
			manifests: []ocispec.Descriptor{one, other},
			message:   "its index has several charts, or more than 16 manifests; name a chart by its digest, such as @sha256:",
		},
		"no chart": {
			manifests: []ocispec.Descriptor{attestation},
			message:   "an OCI manifest was expected, not an index without a chart",
		},
		"an image": {
			manifests: []ocispec.Descriptor{ofPlatform},
			message:   "an OCI manifest was expected, not an index without a chart",
		},
		"many manifests": {
			manifests: append(slices.Repeat([]ocispec.Descriptor{attestation}, maxIndexed-1), one, attestation),
			message:   "its index has several charts, or more than 16 manifests",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data, err := json.Marshal(ocispec.Index{
				Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: test.manifests,
			})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = oras.TagBytes(t.Context(), repository, ocispec.MediaTypeImageIndex, data, ref.Tag)
			g.Expect(err).NotTo(HaveOccurred())

			pulled, err := client.PullChart(t.Context(), ref)
			if test.message != "" {
				g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue())
				g.Expect(err).To(MatchError(ContainSubstring(test.message)))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pulled.Chart).To(Equal(testChart(t)))
			g.Expect(pulled.Reference).To(Equal(ref.WithDigest(one.Digest)))
		})
	}
}
