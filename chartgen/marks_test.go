package chartgen_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// marked are components with a byte order mark inside of a text, by what would happen to them at some positions
// of the mark. PADDING is for a text that determines the position.
var marked = map[string]string{
	"a comment becomes a field": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n# PADDING\n" +
		"data:\n  mark: \ufeffb\n# old: value\n",
	"a field is an error": "apiVersion: v1\nkind: ConfigMap\ndata:\n  # PADDING\n  mark: \ufeffb\nmetadata: {name: a}\n",
	"the value of a variable": "apiVersion: v1\nkind: ConfigMap\ndata:\n  # PADDING\n  mark: ${ODD:=\ufeffb}\n" +
		"metadata: {name: a}\n",
	"an object that is rendered as JSON": "apiVersion: v1\nkind: ConfigMap\ndata:\n  # PADDING\n  \"<<\": \ufeffb\n" +
		"metadata: {name: a}\n",
	"text that values.yaml shows": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n" +
		"    # PADDING\n    spec: {nodeSelector: {mark: \ufeffb}, containers: [{name: \"\ufeff${ODD:=b}\", image: a.b/c}]}\n",
	"a CRD": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  # PADDING\n" +
		"  group: \ufeffb\nmetadata:\n  name: a\n",
	"a Namespace": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  # PADDING\n  labels:\n    mark: \ufeffb\n" +
		"#   old: value\n",
	"aliases": "apiVersion: v1\nkind: ConfigMap\ndata:\n  anchor: &a b\n  # PADDING\n  mark: \ufeffb\n" +
		"metadata: {name: *a}\n",
}

// TestByteOrderMarksInTexts: a chart contains what is written, wherever a byte order mark is.
func TestByteOrderMarksInTexts(t *testing.T) {
	for name, components := range marked {
		t.Run(name, func(t *testing.T) {
			forEachPosition(components, func(position int, b *bundle.Bundle) {
				g := NewWithT(t)

				want, err := fromClusterctlWithMarks(t.Context(), b, nil)
				g.Expect(err).NotTo(HaveOccurred(), "position %d", position)
				got, err := fromChart(b, nil)
				g.Expect(err).NotTo(HaveOccurred(), "position %d", position)
				g.Expect(got).To(Equal(want), "position %d", position)
			})
		})
	}
}

// TestByteOrderMarksAreEscaped: all other programs that read the chart's YAML use the same library.
func TestByteOrderMarksAreEscaped(t *testing.T) {
	for name, components := range marked {
		g := NewWithT(t)
		built, err := chartgen.Build(provider("odd", components))
		g.Expect(err).NotTo(HaveOccurred(), name)

		loaded, err := loadChart(built)
		g.Expect(err).NotTo(HaveOccurred(), name)

		for _, file := range loaded.Raw {
			if strings.HasSuffix(file.Name, ".yaml") && !strings.HasPrefix(file.Name, chart.TemplatesDir) {
				g.Expect(string(file.Data)).NotTo(ContainSubstring(byteOrderMark), "%s: %s", name, file.Name)
			}
		}

		rendered, err := renderChart(built, nil)
		g.Expect(err).NotTo(HaveOccurred(), name)

		for file, text := range rendered {
			g.Expect(text).NotTo(ContainSubstring(byteOrderMark), "%s: %s", name, file)
		}
	}
}

// TestClusterctlMistakesByteOrderMarks is what docs/clusterctl.md says about clusterctl.
func TestClusterctlMistakesByteOrderMarks(t *testing.T) {
	accepted, misread := 0, 0

	forEachPosition(marked["a comment becomes a field"], func(_ int, b *bundle.Bundle) {
		objects, err := clusterctlObjects(t.Context(), b, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, object := range objects {
			if strings.Contains(object, `"old":"value"`) {
				misread++
			}
		}
	})

	forEachPosition(marked["a field is an error"], func(_ int, b *bundle.Bundle) {
		if _, err := clusterctlObjects(t.Context(), b, nil); err == nil {
			accepted++
		}
	})

	NewWithT(t).Expect(misread).To(BeNumerically(">", 0), "clusterctl reads the comment correctly")
	NewWithT(t).Expect(accepted).To(And(BeNumerically(">", 0), BeNumerically("<", positions)))
}

// positions is the number of positions that forEachPosition tries.
const positions = 20

// forEachPosition calls a function for a provider with the given components, in which the first mark is at various
// offsets around 512: the YAML library reads as many bytes at a time.
func forEachPosition(components string, test func(position int, b *bundle.Bundle)) {
	without := strings.Replace(components, "PADDING", "", 1)
	padding := 512 - positions/2 - strings.Index(without, byteOrderMark)

	for i := range positions {
		text := strings.Replace(components, "PADDING", strings.Repeat("-", padding+i), 1)
		test(strings.Index(text, byteOrderMark), provider("odd", text))
	}
}

// fromClusterctlWithMarks is fromClusterctl with a YAML library that does not mistake byte order marks inside of
// texts; see the package blockyaml.
func fromClusterctlWithMarks(
	ctx context.Context, b *bundle.Bundle, values map[string]string,
) (map[string]string, error) {
	// A mark at the beginning of a document is no part of it.
	const separated, crlf = "---\n" + byteOrderMark, "---\r\n" + byteOrderMark

	hide := strings.NewReplacer(separated, separated, crlf, crlf, byteOrderMark, "\ufdd0").Replace
	show := strings.NewReplacer("\ufdd0", byteOrderMark).Replace

	hidden := *b
	hidden.Components = []byte(hide(string(b.Components)))
	hiddenValues := map[string]string{}

	for name, value := range values {
		hiddenValues[name] = hide(value)
	}

	objects, err := fromClusterctl(ctx, &hidden, hiddenValues)
	if err != nil {
		return nil, err
	}

	shown := map[string]string{}
	for name, object := range objects {
		shown[show(name)] = show(object)
	}

	return shown, nil
}
