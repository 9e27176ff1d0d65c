package chartgen_test

import (
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// aliasBomb returns a flow mapping of a few hundred bytes that expands to 9^9 strings.
func aliasBomb() string {
	entries := []string{"a0: &a0 [x, x, x, x, x, x, x, x, x]"}

	for level := '1'; level <= '9'; level++ {
		before := "*a" + string(level-1)
		entries = append(entries, "a"+string(level)+": &a"+string(level)+" ["+strings.Repeat(before+", ", 8)+before+"]")
	}

	return "{" + strings.Join(entries, ", ") + "}"
}

func TestBuildRefusesYAMLBombs(t *testing.T) {
	const (
		head     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		metadata = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
			"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]\n"
	)
	for name, b := range map[string]struct{ components, metadata string }{
		"aliases of an object":   {head + "data: " + aliasBomb() + "\n", metadata},
		"aliases of metadata":    {head, metadata + "more: " + aliasBomb() + "\n"},
		"deep nesting":           {head + "data: " + strings.Repeat("[", 1<<20) + "\n", metadata},
		"a list without its end": {head + "data: [" + strings.Repeat("x, ", 1<<20) + "\n", metadata},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)

			_, err := chartgen.Build(&bundle.Bundle{
				Provider:   bundle.Provider{Name: "x", Type: "InfrastructureProvider", Label: "infrastructure-x"},
				Version:    "v1.0.0",
				Components: []byte(b.components),
				Metadata:   []byte(b.metadata),
			})

			runtime.ReadMemStats(&after)
			g.Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}), "%v", err)
			t.Logf("%d MiB allocated in all: %.120s", (after.TotalAlloc-before.TotalAlloc)>>20, err.Error())
			g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 512<<20))
		})
	}
}
