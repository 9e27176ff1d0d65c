package chartgen_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
)

func crd(name string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + name + "\n"
}

const parent = `apiVersion: v2
name: parent
version: 1.0.0
dependencies:
- {name: always, version: 1.0.0}
- {name: optional, version: 1.0.0, condition: optional.enabled}
`

// aliases returns dependencies on the same chart under several names.
func aliases(name string, count int) string {
	text := "dependencies:\n"
	for i := range count {
		text += fmt.Sprintf("- {name: %s, version: 1.0.0, alias: %s%d}\n", name, name, i)
	}

	return text
}

func TestPlainCRDs(t *testing.T) {
	metadata := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }

	for name, tt := range map[string]struct {
		files  map[string]string
		values map[string]any
		want   []string
		reason string
	}{
		"named by their content": {
			files: map[string]string{
				"crds/crds.yaml": "# comment\n---\n" + crd("a.example.org") + "---\n" + crd("b.example.org"),
			},
			want: []string{"crds/a.example.org.yaml", "crds/b.example.org.yaml"},
		},
		"of a subchart": {
			files: map[string]string{
				"charts/always/Chart.yaml":  metadata("always"),
				"charts/always/crds/x.yaml": crd("x.example.org"),
			},
			want: []string{"crds/x.example.org.yaml"},
		},
		"the same in a subchart": {
			files: map[string]string{
				"crds/x.yaml":              crd("x.example.org"),
				"charts/always/Chart.yaml": metadata("always"), "charts/always/crds/y.yaml": crd("x.example.org"),
			},
			want: []string{"crds/x.example.org.yaml"},
		},
		"of a subchart that is disabled by the chart": {
			files: map[string]string{
				"values.yaml":                "optional: {enabled: false}",
				"charts/optional/Chart.yaml": metadata("optional"), "charts/optional/crds/x.yaml": crd("x.example.org"),
			},
		},
		"of a subchart that is enabled by the values": {
			files: map[string]string{
				"values.yaml":                "optional: {enabled: false}",
				"charts/optional/Chart.yaml": metadata("optional"), "charts/optional/crds/x.yaml": crd("x.example.org"),
			},
			values: map[string]any{"optional": map[string]any{"enabled": true}},
			want:   []string{"crds/x.example.org.yaml"},
		},
		"not templates": {
			files: map[string]string{"templates/crds/x.yaml": crd("x.example.org"), "files/crds/y.yaml": "{{ no YAML }}"},
		},
		"another kind": {
			files:  map[string]string{"crds/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"},
			reason: `crds/x.yaml: it contains "x" of kind "ConfigMap", but only CustomResourceDefinitions may be in crds/`,
		},
		"invalid YAML": {
			files:  map[string]string{"crds/x.yaml": "a: [\n"},
			reason: "crds/x.yaml: ",
		},
		"too many copies of values": {
			files: map[string]string{
				"values.yaml":                            "a: [" + strings.Repeat("1,", 80000) + "]",
				"charts/always/Chart.yaml":               metadata("always") + aliases("nested", 20),
				"charts/always/values.yaml":              "a: 1",
				"charts/always/charts/nested/Chart.yaml": metadata("nested"),
			},
			reason: "Chart.yaml: it has too many dependencies for the size of the values",
		},
		"a dependency that is nothing": {
			files: map[string]string{
				"charts/always/Chart.yaml": metadata("always") + "dependencies: [null]\n",
			},
			reason: "Chart.yaml: ",
		},
		"too many values": {
			files:  map[string]string{"values.yaml": "a: [" + strings.Repeat("1,", 110000) + "]"},
			reason: "values.yaml: it has more than 100000 values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &chart.Chart{Files: []chart.File{{Name: chart.MetadataFile, Data: []byte(parent)}}}

			for name, text := range tt.files {
				c.Files = append(c.Files, chart.File{Name: name, Data: []byte(text)})
			}

			got, err := chartgen.PlainCRDs(c, tt.values, map[string]string{"provider": "p"})
			if tt.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.reason)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			var names []string

			for _, f := range got {
				names = append(names, f.Name)
				g.Expect(string(f.Data)).To(ContainSubstring("labels:\n    provider: p\n"))
			}

			g.Expect(names).To(Equal(tt.want))
		})
	}
}
