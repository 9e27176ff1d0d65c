package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chart"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/charts"
)

// annotation reads what the chart tells Artifact Hub.
func annotation(g Gomega, c *chart.Chart, name string, into any) {
	text := c.Metadata.Annotations["artifacthub.io/"+name]
	g.Expect(text).NotTo(BeEmpty(), name)
	g.Expect(yaml.UnmarshalStrict([]byte(text), into)).To(Succeed(), name)
}

// TestArtifactHub checks that the annotations for Artifact Hub list what the chart has.
func TestArtifactHub(t *testing.T) {
	g := NewWithT(t)
	c, err := charts.Operator()
	g.Expect(err).NotTo(HaveOccurred())

	type definition struct{ Kind, Version, Name, DisplayName, Description string }

	var listed, packaged []definition

	annotation(g, c, "crds", &listed)

	for i := range listed {
		g.Expect(listed[i].Description).NotTo(BeEmpty(), listed[i].Kind)
		listed[i].Description = ""
	}

	for _, file := range c.CRDObjects() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.Unmarshal(file.File.Data, crd)).To(Succeed())

		for _, version := range crd.Spec.Versions {
			kind := crd.Spec.Names.Kind
			packaged = append(packaged, definition{Kind: kind, Version: version.Name, Name: crd.Name, DisplayName: kind})
		}
	}

	g.Expect(listed).To(ConsistOf(packaged))

	var examples []map[string]any

	annotation(g, c, "crdsExamples", &examples)
	g.Expect(examples).To(HaveLen(len(packaged)))

	for i, example := range examples {
		g.Expect(example).To(HaveKeyWithValue("kind", listed[i].Kind))

		text, err := yaml.Marshal(example)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.UnmarshalStrict(text, v1alpha2.ProviderType(listed[i].Kind).New())).To(Succeed(), string(text))
	}
}

// TestArtifactHubImages checks that the images are those of the chart's pods, and the platforms those of the build.
func TestArtifactHubImages(t *testing.T) {
	g := NewWithT(t)
	c, err := charts.Operator()
	g.Expect(err).NotTo(HaveOccurred())

	var listed []struct {
		Name, Image string
		Platforms   []string
	}

	annotation(g, c, "images", &listed)

	var build struct{ DefaultPlatforms []string }

	data, err := os.ReadFile("../../.ko.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(data, &build)).To(Succeed())

	var images []string
	for _, image := range listed {
		images = append(images, image.Image)
		g.Expect(image.Platforms).To(Equal(build.DefaultPlatforms))
	}

	rendered, err := render(c, nil, all)
	g.Expect(err).NotTo(HaveOccurred())

	var used []string
	for _, match := range regexp.MustCompile(`(?m)^ +(?:- )?image: "?([^"\n]+)"?$`).FindAllSubmatch(rendered, -1) {
		used = append(used, string(match[1]))
	}

	g.Expect(images).To(ConsistOf(used))
}

// TestArtifactHubLinks checks that the linked pages exist, and that a pre-release is called one.
func TestArtifactHubLinks(t *testing.T) {
	g := NewWithT(t)
	c, err := charts.Operator()
	g.Expect(err).NotTo(HaveOccurred())

	var links, recommended []struct{ Name, URL string }

	annotation(g, c, "links", &links)
	annotation(g, c, "recommendations", &recommended)

	for _, link := range links {
		page, found := strings.CutPrefix(link.URL, c.Metadata.Home+"/blob/main/")
		g.Expect(found).To(BeTrue(), link.URL)
		g.Expect(filepath.Join("../..", page)).To(BeARegularFile())
	}

	for _, r := range recommended {
		g.Expect(r.URL).To(HavePrefix("https://artifacthub.io/packages/helm/"))
	}

	var isPrerelease bool

	annotation(g, c, "prerelease", &isPrerelease)
	g.Expect(isPrerelease).To(Equal(semver.MustParse(c.Metadata.Version).Prerelease() != ""))
}
