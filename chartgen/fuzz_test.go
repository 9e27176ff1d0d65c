package chartgen_test

import (
	"testing"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// FuzzBuild builds charts from arbitrary bytes. The result must be an error or a chart that can be
// packed, never a panic.
func FuzzBuild(f *testing.F) {
	const metadata = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
		"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]\n"

	f.Add(
		[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {a: b}}\ndata: {x: \"${V:=y}\"}\n"),
		[]byte(metadata),
		[]byte("a: b"),
	)
	f.Add(
		[]byte(
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: a.b\n  labels:\n"+
				"    c: d\nspec:\n  versions:\n  - schema:\n      x: |\n        y\n",
		),
		[]byte(metadata),
		[]byte{},
	)
	f.Add(
		[]byte(
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"+
				"spec: {template: {spec: {containers: [{name: manager, args: [\"--x=${A/#b/c: d}\"]}]}}}\n---\n",
		),
		[]byte(metadata),
		[]byte("{{"),
	)
	f.Add([]byte("webhooks:\n- a\n---\n\xff"), []byte("releaseSeries: 1"), []byte("\x00"))
	f.Fuzz(func(t *testing.T, components, metadata, template []byte) {
		b := &bundle.Bundle{
			Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "x", Label: "infrastructure-x"},
			Version:    "v1.0.0",
			Components: components,
			Metadata:   metadata,
			Templates:  []bundle.File{{Name: "cluster-template.yaml", Data: template}},
		}

		built, err := chartgen.Build(b)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a message")
			}

			return
		}

		if _, err := built.Archive(); err != nil {
			t.Fatalf("a chart that cannot be packed: %v", err)
		}

		if _, _, err := chartgen.RequiredVariables(built); err != nil {
			t.Fatalf("a chart with a schema that cannot be read: %v", err)
		}
	})
}
