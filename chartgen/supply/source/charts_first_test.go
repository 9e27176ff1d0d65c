package source_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/fakesource"
)

// catalogSource returns the source in the catalog of the provider docker, with versions v1.0.0 and
// v1.1.0.
func catalogSource(t *testing.T) (*fakesource.Server, *source.Website) {
	t.Helper()
	g := NewWithT(t)

	server := &fakesource.Server{}
	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		server.Publish("owner/docker", version, map[string][]byte{
			"metadata.yaml":                  []byte(sampleFile(t, version, "metadata.yaml")),
			"infrastructure-components.yaml": []byte(sampleFile(t, version, "infrastructure-components.yaml")),
		})
	}

	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	address := server.URL() + "/owner/docker/releases/latest/infrastructure-components.yaml"
	website, err := source.NewWebsite(address, docker, source.WebOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	return server, website
}

// pushChart pushes a chart that claims to be built from a place.
func pushChart(t *testing.T, c *oci.Client, repository, name, version, from string) *oci.Chart {
	t.Helper()
	g := NewWithT(t)

	made, err := chart.New(chart.Metadata{
		APIVersion: "v2",
		Name:       name,
		Version:    version[1:],
		AppVersion: version,
		Annotations: map[string]string{
			chartgen.AnnotationSource: from, chartgen.AnnotationContentID: "2-abc", chartgen.AnnotationContract: "v1beta1",
		},
	}, []chart.File{{Name: version + "/" + bundle.MetadataFile, Data: []byte("of the chart")}})
	g.Expect(err).NotTo(HaveOccurred())
	ref, err := oci.Parse(repository + ":" + oci.ChartTag(version[1:]))
	g.Expect(err).NotTo(HaveOccurred())
	pushed, err := c.PushChart(t.Context(), ref, made)
	g.Expect(err).NotTo(HaveOccurred())

	return pushed
}

func TestChartsFirst(t *testing.T) {
	c, base := runRegistry(t)
	_, catalog := catalogSource(t)
	own := catalog.Version("v1.0.0").Origin

	for name, test := range map[string]struct {
		chart, from string
		anyOrigin   bool
		accepted    bool
	}{
		"a chart of the catalog's source":     {docker.Label, own, false, true},
		"a chart of the catalog's tag 1.0.0":  {docker.Label, strings.Replace(own, "v1.0.0", "1.0.0", 1), false, true},
		"a chart of another source":           {docker.Label, "https://fork.example.com/components.yaml", false, false},
		"a chart of a tenant's ConfigMap":     {docker.Label, "configmap", false, false},
		"a chart of another version's place":  {docker.Label, catalog.Version("v1.1.0").Origin, false, false},
		"a chart that names no source":        {docker.Label, "", false, false},
		"a chart of another provider":         {"infrastructure-x", own, false, false},
		"any chart, of a repository to trust": {"anything", "https://fork.example.com/components.yaml", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			repository := base + "first/" + strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(name))
			pushed := pushChart(t, c, repository, test.chart, "v1.0.0", test.from)
			p := &source.ChartsFirst{
				Charts: newArtifact(t, c, repository, source.OCIOptions{}), Fallback: catalog, AnyOrigin: test.anyOrigin,
			}
			version := p.Version("v1.0.0")

			found, err := p.Chart(t.Context(), version)
			g.Expect(err).NotTo(HaveOccurred())
			metadata, err := p.Metadata(t.Context(), version)
			g.Expect(err).NotTo(HaveOccurred())

			if test.accepted {
				g.Expect(found.Digest).To(Equal(pushed.Digest))
				g.Expect(string(metadata)).To(Equal("of the chart"))
			} else {
				g.Expect(found).To(BeNil())
				g.Expect(string(metadata)).To(Equal(sampleFile(t, "v1.0.0", "metadata.yaml")))
			}
		})
	}

	t.Run("the catalog's source may be a registry", func(t *testing.T) {
		g := NewWithT(t)
		artifacts := newArtifact(t, c, base+"catalog/artifacts", source.OCIOptions{})
		published := pushChart(t, c, base+"catalog/artifacts", docker.Label, "v1.0.0", "")

		for tag, built := range map[string]bool{"v1.1.0": true, "1.2.0": true, "v1.3.0": false} {
			from := base + "catalog/artifacts:" + tag + "@" + published.Reference.Digest.String()
			if !built {
				from = strings.Replace(from, "catalog/", "fork/", 1)
			}

			version := "v" + strings.TrimPrefix(tag, "v")
			pushed := pushChart(t, c, base+"catalog/charts", docker.Label, version, from)
			p := &source.ChartsFirst{
				Charts: newArtifact(t, c, base+"catalog/charts", source.OCIOptions{}), Fallback: artifacts,
			}

			found, err := p.Chart(t.Context(), p.Version(version))
			g.Expect(err).NotTo(HaveOccurred(), "neither has another chart")

			if built {
				g.Expect(found.Digest).To(Equal(pushed.Digest), tag)
			} else {
				g.Expect(found).To(BeNil(), tag)
			}

			found, err = p.Chart(t.Context(), p.Version("v1.0.0"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Reference.Digest).To(Equal(published.Reference.Digest), "charts of the catalog's source are used")
		}
	})
	t.Run("a version of another source does not hide the newest of the catalog", func(t *testing.T) {
		g := NewWithT(t)
		pushChart(t, c, base+"planted", docker.Label, "v1.1.99", "https://fork.example.com/components.yaml")

		p := &source.ChartsFirst{Charts: newArtifact(t, c, base+"planted", source.OCIOptions{}), Fallback: catalog}
		version, err := source.Resolve(t.Context(), p, source.Request{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version.Name).To(Equal("v1.1.0"))
	})
	t.Run("little time is spent on a source that may be out of reach if the repository has versions", func(t *testing.T) {
		g := NewWithT(t)
		requests := map[string]int{}
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			requests[r.URL.Path]++

			panic(http.ErrAbortHandler) // closes the connection
		}))
		t.Cleanup(server.Close)

		website, err := source.NewWebsite(
			server.URL+"/owner/docker/releases/latest/infrastructure-components.yaml", docker, source.WebOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		p := &source.ChartsFirst{Charts: newArtifact(t, c, base+"planted", source.OCIOptions{}), Fallback: website}
		g.Expect(p.Versions(t.Context())).To(HaveExactElements(HaveField("Name", "v1.1.99")))
		g.Expect(requests).NotTo(BeEmpty())
		g.Expect(requests).To(HaveEach(1))

		slow := &slowSource{}
		p.Fallback = slow
		g.Expect(p.Versions(t.Context())).To(HaveLen(1))
		g.Expect(slow.timeout).To(BeNumerically("~", 10*time.Second, time.Second))

		p.Charts = newArtifact(t, c, base+"empty", source.OCIOptions{})
		_, err = p.Versions(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("too slow")))
		g.Expect(slow.timeout).To(BeZero())
	})
	t.Run("what is accepted is part of the origin", func(t *testing.T) {
		strict := &source.ChartsFirst{Charts: newArtifact(t, c, base+"x", source.OCIOptions{}), Fallback: catalog}
		trusting := &source.ChartsFirst{Charts: strict.Charts, Fallback: catalog, AnyOrigin: true}
		NewWithT(t).Expect(strict.Version("v1.0.0").Origin).NotTo(Equal(trusting.Version("v1.0.0").Origin))
	})
}

// slowSource does not list its versions in time.
type slowSource struct {
	source.Source

	timeout time.Duration // of the last list; 0 for none
}

func (s *slowSource) Versions(ctx context.Context) ([]source.Version, error) {
	s.timeout = 0
	if deadline, limited := ctx.Deadline(); limited {
		s.timeout = time.Until(deadline)
	}

	return nil, errors.New("too slow")
}

func TestChartsFirstWithoutRepository(t *testing.T) {
	server, catalog := catalogSource(t)
	client, err := oci.NewClient(oci.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	registry, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir(), User: "me", Password: "secret"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(registry.Stop)

	try := func(t *testing.T, fallback bool) map[string]error {
		t.Helper()

		p := &source.ChartsFirst{
			Charts:          newArtifact(t, client, "http://"+registry.Address+"/charts/x", source.OCIOptions{}),
			Fallback:        catalog,
			FallBackOnError: fallback,
		}
		version := p.Version("v1.0.0")
		results := map[string]error{}

		_, results["Chart"] = p.Chart(t.Context(), version)
		_, results["Versions"] = p.Versions(t.Context())
		_, results["Metadata"] = p.Metadata(t.Context(), version)

		return results
	}

	for _, problem := range []struct {
		name   string
		cause  func()
		reason oci.Reason
	}{
		{"that refuses access", func() {}, oci.Denied},
		{"that cannot be reached", registry.Stop, oci.Unavailable},
	} {
		problem.cause()
		t.Run("a repository "+problem.name+" is an error that names it", func(t *testing.T) {
			g := NewWithT(t)
			requests := len(server.Requests("/"))

			for call, err := range try(t, false) {
				g.Expect(oci.IsReason(err, problem.reason)).To(BeTrue(), "%s: %v", call, err)
				g.Expect(err).To(MatchError(And(
					ContainSubstring(registry.Address+"/charts/x"), ContainSubstring("--chart-repository-fallback"),
				)), call)
			}

			g.Expect(server.Requests("/")).To(HaveLen(requests), "the catalog's source is not asked")
		})
		t.Run("a repository "+problem.name+" is skipped if that is configured", func(t *testing.T) {
			for call, err := range try(t, true) {
				NewWithT(t).Expect(err).NotTo(HaveOccurred(), call)
			}
		})
	}
}

func TestIsUnavailable(t *testing.T) {
	g := NewWithT(t)

	for _, err := range []error{
		&web.UnreachableError{},
		&web.StatusError{Status: 503},
		&web.RateLimitError{},
		&oci.Error{Reason: oci.Unavailable},
		&oci.Error{Reason: oci.Denied},
	} {
		g.Expect(source.IsUnavailable(err)).To(BeTrue(), "%T", err)
		g.Expect(source.IsUnavailable(errors.Join(err, &source.UntrustedError{}))).To(BeFalse(), "%T", err)
	}

	for _, err := range []error{
		nil,
		errors.New("anything else"),
		&source.UntrustedError{},
		&source.NotFoundError{},
		&bundle.InvalidError{},
		&oci.Error{Reason: oci.Invalid},
	} {
		g.Expect(source.IsUnavailable(err)).To(BeFalse(), "%T", err)
	}
}
