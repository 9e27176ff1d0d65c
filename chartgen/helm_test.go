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
	"github.com/capstan-project/capstan/chartgen/bundle"
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

// TestTextsThatHelmChanges: Helm deletes white space at the end of what a template renders, but not of an object's
// text. It also deletes certain words, so these are refused.
func TestTextsThatHelmChanges(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"

	for name, data := range map[string]string{
		"empty lines at the end":      "  text: |+\n    one\n\n\n",
		"a line separator at the end": "  text: \"one\\u2028\\n\"\n",
	} {
		t.Run(name, func(t *testing.T) { compareBundle(t, provider("odd", head+data)) })
	}

	t.Run("the words in an object", func(t *testing.T) {
		_, err := chartgen.Build(provider("odd", head+"  text: <no value>\n"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(
			"ConfigMap a: it contains the words <no value>, which Helm removes; use others")))
	})

	t.Run("the words in a value", func(t *testing.T) {
		built, err := chartgen.Build(provider("odd", head+"  text: <no ${ODD}>\n"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		_, err = chartObjects(built, map[string]string{"ODD": "value"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(
			"ConfigMap a: the value of a variable contains the words <no value>, which Helm removes; use others")))
	})
}

// compareBundle expects that a bundle without required variables becomes the objects that clusterctl applies.
func compareBundle(t *testing.T, b *bundle.Bundle) {
	t.Helper()

	built, err := chartgen.Build(b)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	compareOnce(t, "defaults", b, built, nil)
}
