package chartgen_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/typed"
)

// FuzzEqualToClusterctl compares random bundles in all styles of YAML, with hostile values. Each byte
// of the input makes one choice of the generator.
func FuzzEqualToClusterctl(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomRecipe(seed))
	}

	f.Fuzz(func(t *testing.T, recipe []byte) { compareRandomBundle(t, recipe) })
}

// TestRandomBundlesEqualToClusterctl is a short form of the fuzz test.
func TestRandomBundlesEqualToClusterctl(t *testing.T) {
	const bundles = 1000

	equal := 0

	for seed := range uint64(bundles) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if compareRandomBundle(t, randomRecipe(seed)) {
				equal++
			}
		})
	}

	NewWithT(t).Expect(equal).To(BeNumerically(">", bundles/5), "too few bundles are valid")
}

// randomRecipe returns the choices for a bundle.
func randomRecipe(seed uint64) []byte {
	recipe := make([]byte, 600)
	_, _ = rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))).Read(recipe)

	return recipe
}

// deliberate are the reasons for which Capstan refuses what clusterctl's library accepts, in addition to components
// that are valid only with certain values; see docs/clusterctl.md. The other differences are what Capstan
// corrects, in differences_test.go and marks_test.go, and Helm's annotations, in helm_test.go.
var deliberate = []string{
	// clusterctl lets a value change other fields, and add objects.
	"more than the field that contains it",
	"more than the fields that contain them",
	"is neither a value, nor a key, nor a part of one",
	"text follows the end of the document",
	// clusterctl's parser understands one encoding of it, in a file with a single document.
	"is UTF-16; convert it to UTF-8",
	// clusterctl ignores all labels of such an object, and the API server refuses wrong annotations and names.
	"the field metadata.",
	"without metadata.name",
	// clusterctl accepts functions that replace the wrong bytes.
	"is not valid UTF-8",
}

// compareRandomBundle compares a random bundle. It reports whether both accept it.
func compareRandomBundle(t *testing.T, recipe []byte) bool {
	t.Helper()

	components, values := randomBundle(recipe)

	return compareBundle(t, components, values)
}

// compareBundle compares what the chart of components renders with what clusterctl generates, with these values
// of their variables. It reports whether both accept them.
func compareBundle(t *testing.T, components string, values map[string]string) bool {
	t.Helper()
	g := NewWithT(t)
	b := provider("odd", components)
	input := fmt.Sprintf("%q in\n%s", values, components)

	got, gotErr := fromChart(b, values)

	// CRDs in charts have the defaults of their variables, which other objects do not use here.
	delete(values, "IN_CRD")

	want, wantErr := fromClusterctlWithMarks(t.Context(), b, values)
	if wantErr != nil {
		g.Expect(gotErr).To(HaveOccurred(), "clusterctl fails with %v for %s", wantErr, input)
		return false
	}

	if gotErr != nil && (isDeliberate(gotErr) || !isValidByDefault(t.Context(), b)) {
		return false
	}

	g.Expect(gotErr).NotTo(HaveOccurred(), input)
	g.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))), input)

	for name := range want {
		expected, rendered := want[name], got[name]
		if !strings.Contains(name, "Kind=CustomResourceDefinition") {
			expected, rendered = withoutHelm(g, expected), withoutHelm(g, rendered)
		}

		g.Expect(rendered).To(MatchJSON(expected), "%s of %s", name, input)
	}

	return true
}

func isDeliberate(err error) bool {
	return slices.ContainsFunc(deliberate, func(reason string) bool { return strings.Contains(err.Error(), reason) })
}

// isValidByDefault reports whether clusterctl accepts components with the defaults of their variables. Capstan
// refuses components that only certain values make valid, because charts are built without values.
func isValidByDefault(ctx context.Context, b *bundle.Bundle) bool {
	text, err := expr.Parse(string(b.Components))
	if err != nil {
		return false
	}

	values := map[string]string{}

	for _, v := range text.Variables() {
		if v.Required {
			values[v.Name] = bundle.Placeholder
		}
	}

	_, err = fromClusterctlWithMarks(ctx, b, values)

	return err == nil
}

// namespaceKey is the key of the Namespace's labels and annotations among the objects.
const namespaceKey = "Namespace"

// fromClusterctl returns the objects that clusterctl would apply, and the metadata of the Namespace.
func fromClusterctl(ctx context.Context, b *bundle.Bundle, values map[string]string) (map[string]string, error) {
	objects, err := clusterctlComponents(ctx, b, values)
	if err != nil {
		return nil, err
	}

	indexed, err := index(objects)
	if err != nil {
		return nil, err
	}

	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			labels := o.GetLabels()
			delete(labels, "clusterctl.cluster.x-k8s.io")
			delete(labels, "cluster.x-k8s.io/provider")

			indexed[namespaceKey], err = namespaceMetadata(labels, o.GetAnnotations())
		}
	}

	return indexed, err
}

// fromChart builds the chart and returns the same as fromClusterctl.
func fromChart(b *bundle.Bundle, values map[string]string) (map[string]string, error) {
	built, err := chartgen.Build(b)
	if err != nil {
		return nil, err
	}

	_, all, err := chartgen.RequiredVariables(built)
	if err != nil {
		return nil, err
	}

	variables, given := map[string]string{}, map[string]any{}

	for _, name := range all {
		if value, found := values[name]; found {
			variables[name], given[name] = value, value
		}
	}

	objects, err := chartObjects(built, variables)
	if err != nil {
		return nil, err
	}

	for name, object := range objects {
		if err := checkMetadata(object); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}

	labels, annotations, err := chartgen.Namespace(built, map[string]any{"variables": given})
	if err != nil {
		return nil, err
	}

	objects[namespaceKey], err = namespaceMetadata(labels, annotations)

	return objects, err
}

// checkMetadata returns an error if the API server would refuse the metadata of an object because of a type.
func checkMetadata(object string) error {
	var o unstructured.Unstructured
	if err := json.Unmarshal([]byte(object), &o.Object); err != nil {
		return err
	}

	return typed.CheckMetadata(&o)
}

// namespaceMetadata returns labels and annotations like an object in JSON.
func namespaceMetadata(labels, annotations map[string]string) (string, error) {
	metadata := map[string]map[string]string{}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}

	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}

	data, err := json.Marshal(map[string]any{"metadata": metadata})

	return string(data), err
}
