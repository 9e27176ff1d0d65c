package cli

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestReadResource(t *testing.T) {
	const head = "apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: InfrastructureProvider\n"
	for name, c := range map[string]struct{ file, namespace, err string }{
		"one":           {head + "metadata: {name: aws, namespace: ns}\nspec: {version: v1.0.0}\n", "", ""},
		"its namespace": {head + "metadata: {name: aws}\n", "ns", ""},
		"no namespace":  {head + "metadata: {name: aws}\n", "", "has no name or no namespace"},
		"an unknown field": {
			head + "metadata: {name: aws, namespace: ns}\nspec: {vresion: v1.0.0}\n",
			"",
			`: unknown field "vresion"`,
		},
		"another kind": {
			"apiVersion: v1\nkind: ConfigMap\n",
			"",
			"contains ConfigMap of v1; expected the resource of a provider",
		},
		"nothing":        {"", "", "contains no kind of no API"},
		"something else": {"a: [", "", "not a single YAML document"},
		"words":          {"words", "", "not a single YAML document: the document has a value of the wrong type, string"},
		"a wrong type": {
			head + "metadata: {name: aws, namespace: ns}\nspec: {paused: 3}\n",
			"",
			"paused has a value of the wrong type, number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "provider.yaml")
			g.Expect(os.WriteFile(file, []byte(c.file), 0o600)).To(Succeed())

			p, err := readResource(nil, file, c.namespace)
			if c.err != "" {
				g.Expect(err).To(MatchError(And(HavePrefix(file), ContainSubstring(c.err))))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v1alpha2.FullName(p)).To(Equal("InfrastructureProvider ns/aws"))
		})
	}
}
