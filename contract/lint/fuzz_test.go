package lint_test

import (
	"testing"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract/lint"
)

// FuzzBundle looks for panics: published files may contain anything.
func FuzzBundle(f *testing.F) {
	f.Add(components, metadata, clusterTemplate)
	f.Add(
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '${X}'}\nspec: 1\n",
		"releaseSeries: [{}]",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [1]}\n",
	)
	f.Add(
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"+
			"metadata: {name: a, labels: {cluster.x-k8s.io/v1beta2: _}}\n"+
			"spec: {names: {kind: ControlPlane}, versions: [{name: ''}]}\n",
		metadata,
		"${",
	)
	f.Fuzz(func(_ *testing.T, components, metadata, template string) {
		for _, b := range []*bundle.Bundle{controlPlaneProvider(), infrastructureProvider()} {
			b.Components, b.Metadata = []byte(components), []byte(metadata)
			b.Templates = []bundle.File{
				{Name: "clusterclass-a.yaml", Data: []byte(template)},
				{Name: "cluster-template.yaml", Data: []byte(template)},
			}
			lint.Bundle(b, nil)
		}
	})
}
