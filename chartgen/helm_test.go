package chartgen_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/capstan-project/capstan/chartgen"
)

// TestAnnotationsForHelm: an object with annotations that mean something to Helm is an object of the
// release like any other, as clusterctl would apply it, only without these annotations.
func TestAnnotationsForHelm(t *testing.T) {
	g := NewWithT(t)

	var components strings.Builder

	for i, annotations := range []string{
		"helm.sh/hook: pre-install", "helm.sh/hook: test", "helm.sh/hook: no-such-hook",
		"helm.sh/resource-policy: keep", "helm.sh/hook: pre-install, helm.sh/hook-weight: '5', own: kept",
		"meta.helm.sh/release-name: other, meta.helm.sh/release-namespace: other", "'${ODD:=helm.sh/hook}': post-install",
		"own: kept, not.helm.sh/hook: kept",
	} {
		name := string(rune('a' + i))
		components.WriteString("---\napiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: " + name + ", annotations: {" + annotations + "}}\n")
	}

	b := provider("odd", components.String())
	built, err := chartgen.Build(b)
	g.Expect(err).NotTo(HaveOccurred())

	want, err := clusterctlObjects(t.Context(), b, nil)
	g.Expect(err).NotTo(HaveOccurred())
	got, err := chartObjects(built, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))))

	for name := range want {
		g.Expect(got[name]).NotTo(MatchRegexp(`"(meta\.)?helm\.sh`), name)
		g.Expect(withoutHelm(g, got[name])).To(MatchJSON(withoutHelm(g, want[name])), name)
	}

	rendered, err := renderChart(built, nil)
	g.Expect(err).NotTo(HaveOccurred())
	delete(rendered, "infrastructure-odd/templates/NOTES.txt")

	hooks, manifests, err := releaseutil.SortManifests(rendered, chartutil.DefaultVersionSet, releaseutil.InstallOrder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hooks).To(BeEmpty())
	g.Expect(manifests).To(HaveLen(8))
}

// withoutHelm removes the annotations that mean something to Helm from an object in JSON.
func withoutHelm(g *WithT, object string) string {
	var content map[string]any
	g.Expect(json.Unmarshal([]byte(object), &content)).To(Succeed())

	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return strings.HasPrefix(key, "helm.sh/") || strings.HasPrefix(key, "meta.helm.sh/")
	})

	// Go types have no empty annotations.
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}

	data, err := json.Marshal(content)
	g.Expect(err).NotTo(HaveOccurred())

	return string(data)
}

// TestTextsThatHelmChanges: Helm deletes words and white space at the end of what a template renders,
// but no text of an object.
func TestTextsThatHelmChanges(t *testing.T) {
	for name, data := range map[string]string{
		"empty lines at the end":          "  text: |+\n    one\n\n\n",
		"a line separator at the end":     "  text: \"one\\u2028\\n\"\n",
		"the words in the text":           "  text: <no value>\n",
		"the words around a line break":   "  text: <no\n    value>\n",
		"the words around a hidden break": "  text: \"<no \\\n    value>\"\n",
		"the words in the value":          "  text: \"${ODD}\"\n",
		"the words around the words":      "  text: <no <no value>value>\n",
		"the words around the value":      "  text: <no ${ODD}value>\n",
		"the words in a default":          "  text: ${ODD_OTHER:=<no value>}\n",
		"the words around a default":      "  text: <no ${ODD_OTHER:=value>}\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := provider("odd", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n"+data)
			values := map[string]string{"ODD": "<no value>"}

			want, err := clusterctlObjects(t.Context(), b, values)
			g.Expect(err).NotTo(HaveOccurred())

			built, err := chartgen.Build(b)
			g.Expect(err).NotTo(HaveOccurred())

			_, all, err := chartgen.RequiredVariables(built)
			g.Expect(err).NotTo(HaveOccurred())
			maps.DeleteFunc(values, func(name, _ string) bool { return !slices.Contains(all, name) })

			got, err := chartObjects(built, values)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
}
