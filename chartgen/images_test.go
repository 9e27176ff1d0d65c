package chartgen_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/render"
)

// TestImagesFromVariables: clusterctl and the chart refuse the same images that variables set, and the error
// says which container it is.
func TestImagesFromVariables(t *testing.T) {
	for name, test := range map[string]struct{ image, value, refused string }{
		"a default without registry":       {"${ODD:=foo/bar}", "", "manager"},
		"a value without registry":         {"${ODD:=a.example/b}", "foo/bar", "manager"},
		"a canonical value":                {"${ODD:=foo/bar}", "a.example/foo/bar:v1", ""},
		"a canonical default":              {"${ODD:=a.example/foo}", "", ""},
		"an empty value":                   {"${ODD}", "", "manager"},
		"a registry that is empty":         {"${ODD:=}nginx", "", "manager"},
		"a registry":                       {"${ODD:=}nginx", "a.example/", ""},
		"a value that is no name":          {"${ODD:=a.example/b}", "http://a.example/b", "manager"},
		"a number":                         {"${ODD:=a.example/b}", "12", "manager"},
		"a variable beside the image":      {"a.example/b, args: [\"${ODD:=c}\"]", "", ""},
		"the image of an init container":   {"a.b/c}], initContainers: [{name: first, image: \"${ODD:=b}\"", "", "first"},
		"the image of a second container":  {"a.b/c}, {name: second, image: \"${ODD:=b}\"", "", "second"},
		"a placeholder of a required name": {"${ODD}", bundle.Placeholder + ".example/a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := provider("odd", deploymentImage(test.image))
			values := map[string]string{"ODD": test.value}

			_, wantErr := clusterctlObjects(t.Context(), b, values)

			built, err := chartgen.Build(b)
			g.Expect(err).NotTo(HaveOccurred())

			_, err = chartObjects(built, values)

			if test.refused == "" {
				g.Expect(wantErr).NotTo(HaveOccurred())
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			g.Expect(wantErr).To(HaveOccurred())
			g.Expect(err).To(MatchError(HaveSuffix(
				"Deployment manager: the image of the container %q is not a canonical name, such as "+
					"registry.example.com/path/name:v1, with the given variables; correct the variable that sets it",
				test.refused)))
		})
	}
}

// TestUnknownImages: tools that do not know the values of required variables can render a chart.
func TestUnknownImages(t *testing.T) {
	g := NewWithT(t)

	built, err := chartgen.Build(provider("odd", deploymentImage("${ODD}")))
	g.Expect(err).NotTo(HaveOccurred())

	images, err := render.Images(built)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images).To(ConsistOf(bundle.Placeholder))
}

// TestCanonicalImages: the templates and the library that clusterctl uses agree on which images are canonical.
func TestCanonicalImages(t *testing.T) {
	g := NewWithT(t)

	long := strings.Repeat("a", 255)
	hex := strings.Repeat("0a", 32)
	images := []string{
		"", "nginx", "foo/bar", "a.b/c", "a:1/c", "a:/c", "localhost/a", "localhost", "Foo/bar", "foo/Bar", "a.b/C",
		"docker.io/a", "docker.io/a/b", "docker.io/library/a:v1", "index.docker.io/a/b", "docker.io:443/a", "a.b/c\n",
		"[::1]/a", "[::1]:5000/a", "[::g]/a", "-a.b/c", "a-.b/c", "a..b/c", "a.b/c//d", "a.b/c/", "a.b/c__d", "a.b/c___d",
		"a.b/c-.d", "a.b/c:v1", "a.b/c:-v", "a.b/c:" + long[:128], "a.b/c:" + long[:129], "a.b/" + long, "a.b/" + long + "a",
		"a.b/c@sha256:" + hex, "a.b/c:v1@sha256:" + hex, "a.b/c@sha256:" + hex[:62], "a.b/c@sha256:" + strings.ToUpper(hex),
		"a.b/c@sha384:" + hex + hex[:32], "a.b/c@sha512:" + hex + hex, "a.b/c@sha512:" + hex, "a.b/c@md5:" + hex[:32], hex,
		"a.b/c@sha256:" + hex + ":v1", "ä.b/c", "a.b/ä",
		" a.b/c", "a.b/c v1", "a_b.c/d", "a.b:80:80/c", "${A}/b", "http://a.b/c",
	}

	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{
		"a", "b.c", "A", "/", "/", ":", ":1", "@", "-", "_", ".", "docker.io", "library", "localhost", "sha256:" + hex,
	}

	for range 5000 {
		image := []string{"", "b.c/a", "A/b"}[random.IntN(3)]
		for range random.IntN(6) {
			image += parts[random.IntN(len(parts))]
		}

		images = append(images, image)
	}

	built, err := chartgen.Build(provider("odd", configMap))
	g.Expect(err).NotTo(HaveOccurred())

	rendered, err := engine.Render(&helmchart.Chart{
		Metadata: &helmchart.Metadata{Name: "images"},
		Templates: []*helmchart.File{
			{Name: "templates/_image.tpl", Data: built.File("templates/_image.tpl")},
			{Name: "templates/images.yaml", Data: []byte(
				`{{ range .Values.images }}{{ include "capstan.isCanonical" . | default "false" }}{{ "\n" }}{{ end }}`)},
		},
	}, chartutil.Values{"Values": chartutil.Values{"images": images}})
	g.Expect(err).NotTo(HaveOccurred())

	var wrong []string

	canonical := 0

	for i, verdict := range strings.Fields(rendered["images/templates/images.yaml"]) {
		want := bundle.IsCanonicalImage(images[i])
		if want {
			canonical++
		}

		if verdict != fmt.Sprint(want) {
			wrong = append(wrong, images[i])
		}
	}

	g.Expect(wrong).To(BeEmpty())
	g.Expect(canonical).To(BeNumerically(">", 100))
}
