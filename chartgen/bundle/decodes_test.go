package bundle_test

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
)

const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"

// decoded are documents, by the name of the object, and how often each is decoded when a chart is built: once, and
// once more for the places of its scalars if it contains expressions and is rendered with other values.
var decoded = map[string]struct {
	document string
	times    int
}{
	"plain":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {a: $$b}\n", 1},
	"namespace": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: namespace}\n", 1},
	"manager": {
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager}\n" +
			"spec: {template: {spec: {containers: [{name: manager, image: example.com/a/b:v1}]}}}\n", 1,
	},
	"defined":  {crd + "metadata: {name: defined}\nspec: {description: '^a$'}\n", 1},
	"computed": {crd + "metadata: {name: computed}\nspec: {description: '${A:=b}'}\n", 1},
	"values":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {a: '${A:=b}'}\n", 2},
	"images": {
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: images}\n" +
			"spec: {template: {spec: {containers: [{name: manager, image: '${IMAGE:=short}'}]}}}\n", 2,
	},
}

func TestDecodes(t *testing.T) {
	g := NewWithT(t)
	name := regexp.MustCompile(`name: (\w+)`)
	counts := map[string]int{}

	bundle.CountDecodes(t, func(text string) {
		if match := name.FindStringSubmatch(text); match != nil {
			counts[match[1]]++
		}
	})

	published := &bundle.Bundle{
		Provider: bundle.Provider{Type: "InfrastructureProvider", Name: "a", Label: "infrastructure-a"},
		Version:  "v1.0.0",
		Metadata: []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
			"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]\n"),
	}
	for _, c := range decoded {
		published.Components = append(published.Components, "---\n"+c.document...)
	}

	_, err := chartgen.Build(published)
	g.Expect(err).NotTo(HaveOccurred())

	for name, c := range decoded {
		g.Expect(counts).To(HaveKeyWithValue(name, c.times))
	}
}

// TestDecodesOfDecode: with values, only a document with expressions is decoded again.
func TestDecodesOfDecode(t *testing.T) {
	for name, again := range map[string]int{"plain": 0, "values": 1} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			components, err := bundle.ParseComponents([]byte(decoded[name].document))
			g.Expect(err).NotTo(HaveOccurred())

			times := 0

			bundle.CountDecodes(t, func(string) { times++ })

			doc := &components.Documents[0]
			content, err := doc.Decode(nil, limit.NewFile())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content).To(Equal(doc.Object.Object))
			g.Expect(times).To(Equal(again))

			content["kind"] = "changed"

			g.Expect(doc.Object.GetKind()).NotTo(Equal("changed"))
		})
	}
}
