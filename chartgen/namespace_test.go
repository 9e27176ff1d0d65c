package chartgen_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
)

// TestNamespace: the labels and annotations of the Namespace have the values of variables, as clusterctl's do.
func TestNamespace(t *testing.T) {
	type entries = map[string]string

	const head = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: odd-system\n"

	for name, c := range map[string]struct {
		namespace   string
		variables   map[string]any
		labels      entries
		annotations entries
	}{
		"constants": {
			head + "  labels: {a: b}\n  annotations: {c: d}\n", nil, entries{"a": "b"}, entries{"c": "d"},
		},
		"variables": {
			head + "  labels: {team: \"${ODD_TEAM}\", level: \"${ODD_LEVEL:=privileged}\"}\n" +
				"  annotations: {note: '${ODD_TEAM}s'}\n",
			map[string]any{"ODD_TEAM": "us", "ODD_LEVEL": "baseline"},
			entries{"team": "us", "level": "baseline"}, entries{"note": "uss"},
		},
		"a default": {
			head + "  labels: {level: \"${ODD_LEVEL:=privileged}\"}\n", nil, entries{"level": "privileged"}, nil,
		},
		"a variable with a default elsewhere": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"${ODD:=b}\"}\n---\n" +
				head + "  labels: {a: \"${ODD}\"}\n", nil, entries{"a": ""}, nil,
		},
		"line breaks of Windows": {
			"\ufeffapiVersion: v1\r\nkind: Namespace\r\nmetadata:\r\n  name: a\r\n  labels:\r\n    a: \"${ODD:=b}\"\r\n",
			map[string]any{"ODD": "c"}, entries{"a": "c"}, nil,
		},
		"labels of clusterctl and annotations for Helm": {
			head + "  labels: {clusterctl.cluster.x-k8s.io: \"\", cluster.x-k8s.io/provider: infrastructure-odd, a: b}\n" +
				"  annotations: {helm.sh/resource-policy: keep, meta.helm.sh/release-name: a, c: d}\n",
			nil, entries{"a": "b"}, entries{"c": "d"},
		},
		"no Namespace": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: b}}\n", nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			built, err := chartgen.Build(provider("odd", c.namespace))
			g.Expect(err).NotTo(HaveOccurred())

			labels, annotations, err := chartgen.Namespace(built, map[string]any{"variables": c.variables})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(labels).To(Equal(c.labels))
			g.Expect(annotations).To(Equal(c.annotations))
		})
	}
}

// TestNamespaceWithWrongValues: a value that is no YAML where it is used, or adds a label, is refused. The error does
// not contain it.
func TestNamespaceWithWrongValues(t *testing.T) {
	g := NewWithT(t)

	built, err := chartgen.Build(provider("odd",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {a: ${ODD:=b}}}\n"))
	g.Expect(err).NotTo(HaveOccurred())

	for _, value := range []string{"*secret", "secret, pod-security.kubernetes.io/enforce: privileged"} {
		_, _, err = chartgen.Namespace(built, map[string]any{"variables": map[string]any{"ODD": value}})
		g.Expect(err).To(MatchError("chart infrastructure-odd: the provider's Namespace: the value of variable ODD changes " +
			"more than the field that contains it; remove line breaks from it, or put the expression in quotes"))
	}
}

// TestNamespaceWithLargeValues: a value is refused before it is put into the places of its expressions.
func TestNamespaceWithLargeValues(t *testing.T) {
	g := NewWithT(t)

	built, err := chartgen.Build(provider("odd",
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  annotations:\n"+many(1900, "    a%d: ${ODD:=b}\n")))
	g.Expect(err).NotTo(HaveOccurred())

	values := map[string]any{"variables": map[string]any{"ODD": strings.Repeat("x", 900<<10)}}
	_, _, err = chartgen.Namespace(built, values)
	g.Expect(err).To(MatchError("chart infrastructure-odd: the provider's Namespace: with the values of its variables, " +
		"it is larger than 16 MiB; shorten them"))
}
