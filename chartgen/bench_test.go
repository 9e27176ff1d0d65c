package chartgen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/test/testproviders"
)

// benchmarked are the largest providers and the most common ones.
var benchmarked = []string{"cluster-api", "infrastructure-aws", "infrastructure-azure", "infrastructure-k0smotron"}

// benchmark runs f with the newest version of each of these providers, or with a generated one.
func benchmark(b *testing.B, f func(b *testing.B, provider *bundle.Bundle)) {
	folder, labels := os.Getenv(testproviders.Variable), benchmarked
	if folder == "" {
		folder, labels = b.TempDir(), []string{"infrastructure-large"}
		if err := testproviders.WriteLarge(folder); err != nil {
			b.Fatal(err)
		}
	}

	for _, label := range labels {
		directory, err := source.NewDirectory(filepath.Join(folder, label))
		if err != nil {
			b.Fatal(err)
		}

		releases, err := directory.Versions(b.Context())
		if err != nil {
			b.Fatal(err)
		}

		provider, err := directory.Fetch(b.Context(), releases[0])
		if err != nil {
			b.Fatal(err)
		}

		b.Run(label, func(b *testing.B) {
			b.ReportAllocs()
			f(b, provider.Bundle)
		})
	}
}

// BenchmarkBuild measures the way from published components to a packed chart. MB/s refers to the
// components.
func BenchmarkBuild(b *testing.B) {
	benchmark(b, func(b *testing.B, provider *bundle.Bundle) {
		b.SetBytes(int64(len(provider.Components)))

		for b.Loop() {
			built, err := chartgen.Build(provider)
			if err != nil {
				b.Fatal(err)
			}

			if _, err := built.Archive(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRender measures how long Helm takes to render a chart that is already loaded.
func BenchmarkRender(b *testing.B) {
	benchmark(b, func(b *testing.B, provider *bundle.Bundle) {
		built, err := chartgen.Build(provider)
		if err != nil {
			b.Fatal(err)
		}

		loaded, err := loadChart(built)
		if err != nil {
			b.Fatal(err)
		}

		required, _, err := chartgen.RequiredVariables(built)
		if err != nil {
			b.Fatal(err)
		}

		variables := map[string]any{}
		for _, name := range required {
			variables[name] = "cmVxdWlyZWQ="
		}

		for b.Loop() {
			values, err := chartutil.ToRenderValues(loaded, map[string]any{"variables": variables},
				chartutil.ReleaseOptions{Name: "bench", Namespace: targetNamespace}, chartutil.DefaultCapabilities)
			if err != nil {
				b.Fatal(err)
			}

			if _, err := engine.Render(loaded, values); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkGrowth measures that the cost of a chart grows with the nesting of its objects, their expressions, and their
// number, and not faster: the time for each of the 1, 4 and 16 times as many stays about the same.
func BenchmarkGrowth(b *testing.B) {
	nested := func(n int) string {
		return configMap + "data: " + strings.Repeat("{a: ", n) + "'${A:=b}'" + strings.Repeat("}", n) + "\n"
	}
	expressions := func(n int) string { return configMap + "data:\n" + many(n, "  a%[1]d: '${A%[1]d:=b}'\n") }
	documents := func(n int) string {
		return many(n, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\ndata: {a: '${A:=b}'}\n")
	}

	for name, c := range map[string]struct {
		components func(n int) string
		least      int
	}{"nesting": {nested, 6}, "expressions": {expressions, 50}, "documents": {documents, 50}} {
		for _, times := range []int{1, 4, 16} {
			b.Run(fmt.Sprint(name, " ", times), func(b *testing.B) {
				n := c.least * times

				for b.Loop() {
					built, err := chartgen.Build(provider("odd", c.components(n)))
					if err != nil {
						b.Fatal(err)
					}

					if _, err := render.Manifest(built, targetNamespace, nil); err != nil {
						b.Fatal(err)
					}
				}

				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/each")
			})
		}
	}
}
