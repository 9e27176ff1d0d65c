package chartgen_test

import (
	"testing"

	. "github.com/onsi/gomega"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
)

// TestQuoting: what values.yaml says about quotes is what Helm does to variables.
func TestQuoting(t *testing.T) {
	const components = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: \"${ODD:=none}\"}\n"

	g := NewWithT(t)
	built, err := chartgen.Build(provider("odd", components))
	g.Expect(err).NotTo(HaveOccurred())

	text := string(built.File(chart.ValuesFile))

	for written, read := range map[string]string{
		"1.0": "1", "0755": "493", "yes": "true", "9007199254740993": "9007199254740992",
		`"1.0"`: "1.0", `"0755"`: "0755", `"yes"`: "yes", `"9007199254740993"`: "9007199254740993",
		"info": "info", "3": "3", "true": "true",
	} {
		g := NewWithT(t)

		var values map[string]any
		g.Expect(yaml.Unmarshal([]byte("variables: {ODD: "+written+"}"), &values)).To(Succeed())

		manifest, err := render.Manifest(built, targetNamespace, values)
		g.Expect(err).NotTo(HaveOccurred())
		objects, err := utilyaml.ToUnstructured([]byte(manifest))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(objects).To(HaveLen(1))
		g.Expect(field(objects[0].Object, "data.value")).To(Equal(read), written)
	}

	g.Expect(text).To(And(
		ContainSubstring("1.0 to 1, 0755 to 493,"), ContainSubstring("yes to true, and numbers of more than 15 digits"),
		ContainSubstring(`Write "1.0" instead, or use --set-string.`),
	))
}
