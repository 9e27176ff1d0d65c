package chartgen_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
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
	const bundles = 400

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

// deliberate are the reasons for which Capstan refuses what clusterctl accepts.
var deliberate = []string{
	"a value contains line breaks that end the object early",
}

// compareRandomBundle compares what the chart renders with what clusterctl generates. It reports whether
// both accept the bundle.
func compareRandomBundle(t *testing.T, recipe []byte) bool {
	t.Helper()
	g := NewWithT(t)

	components, values := randomBundle(recipe)
	b := provider("odd", components)

	want, wantErr := clusterctlObjects(t.Context(), b, values)
	got := map[string]string{}

	built, gotErr := chartgen.Build(b)
	if gotErr == nil {
		_, all, err := chartgen.RequiredVariables(built)
		g.Expect(err).NotTo(HaveOccurred())
		maps.DeleteFunc(values, func(name, _ string) bool { return !slices.Contains(all, name) })

		got, gotErr = chartObjects(built, values)
	}

	input := fmt.Sprintf("%q in\n%s", values, components)

	if wantErr != nil {
		g.Expect(gotErr).To(HaveOccurred(), "clusterctl fails with %v for %s", wantErr, input)
		return false
	}

	if gotErr != nil && slices.ContainsFunc(deliberate, func(reason string) bool {
		return strings.Contains(gotErr.Error(), reason)
	}) {
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
