package chartgen_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// TestRebuild: of a chart that another program may have written, only the content is used. The result is the chart that
// Capstan builds of the release, byte for byte.
func TestRebuild(t *testing.T) {
	forEachRelease(t, func(t *testing.T, b *bundle.Bundle) {
		g := NewWithT(t)
		built, err := chartgen.Build(b)
		g.Expect(err).NotTo(HaveOccurred())

		want, err := built.Archive()
		g.Expect(err).NotTo(HaveOccurred())

		foreign := &chart.Chart{Metadata: built.Metadata, CRDs: built.CRDs}

		for _, f := range built.Files {
			switch {
			case strings.HasPrefix(f.Name, "templates/"):
				f.Data = []byte(`{{ fail "evaluated" }}`)
			case slices.Contains([]string{"values.yaml", "values.schema.json", "files/objects.json", "README.md"}, f.Name):
				f.Data = []byte("foreign")
			}

			foreign.Files = append(foreign.Files, f)
		}

		foreign.Files = append(foreign.Files, chart.File{Name: "templates/more.yaml", Data: []byte("kind: Intruder")})

		rebuilt, err := chartgen.Rebuild(foreign)
		g.Expect(err).NotTo(HaveOccurred())

		got, err := rebuilt.Archive()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(chart.Digest(got)).To(Equal(chart.Digest(want)))
	})
}

// TestRebuildEnds: a file of a chart need not end with a line break.
func TestRebuildEnds(t *testing.T) {
	g := NewWithT(t)
	built, err := chartgen.Build(odd(t))
	g.Expect(err).NotTo(HaveOccurred())

	foreign := &chart.Chart{Metadata: built.Metadata, CRDs: built.CRDs}

	for _, f := range built.Files {
		foreign.Files = append(foreign.Files, chart.File{Name: f.Name, Data: bytes.TrimSuffix(f.Data, []byte("\n"))})
	}

	rebuilt, err := chartgen.Rebuild(foreign)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rebuilt.File("objects/deployment-odd-controller-manager.yaml")).To(
		Equal(built.File("objects/deployment-odd-controller-manager.yaml")))
}

// TestRebuildKeepsNames: objects with the same kind and name, in different namespaces, keep their files.
func TestRebuildKeepsNames(t *testing.T) {
	g := NewWithT(t)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s, namespace: %s}\n---\n"

	var components strings.Builder
	for i := range 11 {
		fmt.Fprintf(&components, role, "odd", fmt.Sprint("n", i))
	}

	fmt.Fprintf(&components, role, "odd-2", "n")

	built, err := chartgen.Build(provider("odd", components.String()))
	g.Expect(err).NotTo(HaveOccurred())
	rebuilt, err := chartgen.Rebuild(built)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rebuilt.Files).To(Equal(built.Files))
}

// TestRebuildWithoutObjects: a provider may have nothing but CRDs.
func TestRebuildWithoutObjects(t *testing.T) {
	g := NewWithT(t)
	built, err := chartgen.Build(odd(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(built.CRDs).NotTo(BeEmpty())

	built.Files = slices.DeleteFunc(built.Files, func(f chart.File) bool { return strings.HasPrefix(f.Name, "objects/") })

	rebuilt, err := chartgen.Rebuild(built)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rebuilt.CRDs).To(Equal(built.CRDs))
}

// TestRebuildInvalid: a chart that was not built from components is refused.
func TestRebuildInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(c *chart.Chart)
		message string
	}{
		"no objects and CRDs": {func(c *chart.Chart) { c.Files, c.CRDs = nil, nil }, "contains no object"},
		"no metadata": {
			func(c *chart.Chart) {
				c.Files = slices.DeleteFunc(slices.Clone(c.Files), func(f chart.File) bool {
					return strings.HasSuffix(f.Name, bundle.MetadataFile)
				})
			}, "metadata.yaml: ",
		},
		"a CRD that is none": {
			func(c *chart.Chart) { c.CRDs = []chart.File{{Name: "crds/a.yaml", Data: []byte(configMap)}} },
			"crds/a.yaml: it is no CustomResourceDefinition",
		},
		"a CRD that is no object": {
			func(c *chart.Chart) { c.CRDs = []chart.File{{Name: "crds/a.yaml", Data: []byte("- a")}} }, "crds/a.yaml: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			built, err := chartgen.Build(odd(t))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			c.change(built)

			_, err = chartgen.Rebuild(built)
			NewWithT(t).Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}
