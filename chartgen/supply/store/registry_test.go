package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
)

func TestRegistry(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testRegistry(t, i) })
	}
}

func testRegistry(t *testing.T, i bed.Implementation) {
	_, s := registryStore(t, i)
	key := Key{Provider: "infrastructure-x", Version: "v1.0.0+build.1", ContentID: "2-abc"}
	c := testChart(t, key)

	t.Run("a chart is read as it was pushed, with its annotations in the manifest", func(t *testing.T) {
		g := NewWithT(t)
		ref, err := s.Push(t.Context(), key.Version, c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ref.String()).To(MatchRegexp(`^oci://[^/]+/capi/infrastructure-x:1\.0\.0_build\.1@sha256:`))
		pulled, err := s.Client.PullChart(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pulled.Chart).To(Equal(c))

		artifact, err := s.Client.Artifact(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(artifact.Manifest.Annotations).To(And(
			HaveKeyWithValue(chartgen.AnnotationContentID, "2-abc"),
			HaveKeyWithValue(chartgen.AnnotationSource, "directory"),
			HaveKeyWithValue(
				chartgen.AnnotationChartgenVersion,
				"2",
			),
			HaveKeyWithValue("org.opencontainers.image.created", "1970-01-01T00:00:00Z"),
		))
	})
	t.Run("the manifest depends on the chart alone", func(t *testing.T) {
		g := NewWithT(t)
		first, err := s.Push(t.Context(), key.Version, c)
		g.Expect(err).NotTo(HaveOccurred())

		_, elsewhere := registryStore(t, i)
		second, err := elsewhere.Push(t.Context(), key.Version, c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second.Digest).To(Equal(first.Digest))
	})
	t.Run("a chart of other content, or from elsewhere, gets a tag of its own", func(t *testing.T) {
		g := NewWithT(t)
		before, err := s.Push(t.Context(), key.Version, c)
		g.Expect(err).NotTo(HaveOccurred())

		other := key
		other.ContentID = "3-def"
		elsewhere := testChart(t, key)
		elsewhere.Metadata.Annotations[chartgen.AnnotationSource] = "https://elsewhere.example.com/components.yaml"
		elsewhere, err = chart.New(elsewhere.Metadata, nil)
		g.Expect(err).NotTo(HaveOccurred())

		seen := map[string]bool{before.Tag: true}

		for _, c := range []*chart.Chart{testChart(t, other), elsewhere} {
			ref, err := s.Push(t.Context(), key.Version, c)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ref.String()).To(MatchRegexp(`:1\.0\.0_build\.1_[0-9a-f]{12}@`))
			g.Expect(seen).NotTo(HaveKey(ref.Tag))
			seen[ref.Tag] = true
			pulled, err := s.Client.PullChart(t.Context(), ref)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pulled.Chart).To(Equal(c))
		}

		now, err := s.Client.Resolve(t.Context(), before.WithDigest(""))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now.Digest).To(Equal(before.Digest))
	})
	t.Run("existing tags are never overwritten", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			_, _ = s.Push(t.Context(), key.Version, testChart(t, key, chart.File{Name: "more", Data: []byte("x")}))
		}

		_, err := s.Push(t.Context(), key.Version, testChart(t, key, chart.File{Name: "still", Data: []byte("more")}))
		g.Expect(oci.IsReason(err, oci.Conflict)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(ContainSubstring("never overwritten")))
	})
}

// TestRegistryWithHelm checks that helm can pull what Capstan pushes, and the reverse.
func TestRegistryWithHelm(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testRegistryWithHelm(t, i) })
	}
}

func testRegistryWithHelm(t *testing.T, i bed.Implementation) {
	r, s := registryStore(t, i)
	key := Key{Provider: "infrastructure-x", Version: "v1.2.3+build", ContentID: "2-abc"}
	c := testChart(t, key, chart.File{Name: "values.yaml", Data: []byte("a: b\n")})
	g := NewWithT(t)
	put, err := s.Push(t.Context(), key.Version, c)
	g.Expect(err).NotTo(HaveOccurred())
	pushed, err := s.Client.PullChart(t.Context(), put)
	g.Expect(err).NotTo(HaveOccurred())
	set, err := tools.Find()
	g.Expect(err).NotTo(HaveOccurred())

	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	g.Expect(os.WriteFile(ca, r.CA, 0o600)).To(Succeed())

	helm := func(args ...string) {
		cmd := exec.Command(
			set.Program(tools.Helm()),
			append(args, "--ca-file", ca, "--username", "me", "--password", password)...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	helm("pull", "oci://"+r.Address+"/capi/infrastructure-x", "--version", "1.2.3+build")

	archive, err := os.ReadFile(filepath.Join(dir, c.Filename()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chart.Digest(archive)).To(Equal(pushed.Digest))

	helm("push", c.Filename(), "oci://"+r.Address+"/by-helm")
	repository, err := oci.Parse(r.Address + "/by-helm/infrastructure-x:1.2.3_build")
	g.Expect(err).NotTo(HaveOccurred())
	pulled, err := s.Client.PullChart(t.Context(), repository)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pulled.Chart).To(Equal(c))
	g.Expect(pulled.Digest).To(Equal(pushed.Digest))
}
