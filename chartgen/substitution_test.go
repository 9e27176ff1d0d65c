package chartgen_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:"

// places are components with the variable V in all places of YAML, and the path of the field that contains it; empty if
// none does. The last element "*" is the only entry besides "kept".
var places = map[string]struct{ components, path string }{
	"plain":           {configMap + "data:\n  a: ${V}\n  kept: b\n", "data.a"},
	"a part":          {configMap + "data:\n  a: -${V}-\n  kept: b\n", "data.a"},
	"a function":      {configMap + "data:\n  a: ${V/#x/y}\n  kept: b\n", "data.a"},
	"a default":       {configMap + "data:\n  a: ${V:=b}\n  kept: b\n", "data.a"},
	"the last field":  {configMap + "data:\n  kept: b\n  a: ${V}\n", "data.a"},
	"double quotes":   {configMap + "data:\n  a: \"${V}\"\n  kept: b\n", "data.a"},
	"single quotes":   {configMap + "data:\n  a: '${V}'\n  kept: b\n", "data.a"},
	"literal block":   {configMap + "data:\n  a: |\n    first\n    ${V}\n    last\n  kept: b\n", "data.a"},
	"folded block":    {configMap + "data:\n  a: >-\n    ${V}\n  kept: b\n", "data.a"},
	"block at an end": {configMap + "data:\n  kept: b\n  a: |\n    ${V}\n", "data.a"},
	"flow map":        {configMap + "data: {a: ${V}, kept: b}\n", "data.a"},
	"flow list":       {configMap + "data: {a: [x, ${V}, y], kept: b}\n", "data.a.1"},
	"block list":      {configMap + "data:\n  a:\n  - x\n  - ${V}\n  - y\n  kept: b\n", "data.a.1"},
	"whole map":       {configMap + "data: ${V}\nkept: b\n", "data"},
	"key":             {configMap + "data:\n  ${V}: a\n  kept: b\n", "data.*"},
	"quoted key":      {configMap + "data: {\"${V}\": a, kept: b}\n", "data.*"},
	"name":            {head + "\n  name: ${V}\n  labels: {a: b}\n", "metadata.name"},
	"namespace":       {head + "\n  namespace: ${V}\n  name: a\n", "metadata.namespace"},
	"kind":            {"apiVersion: v1\nkind: ${V}\nmetadata: {name: a}\n", "kind"},
	"version":         {"apiVersion: ${V}\nkind: ConfigMap\nmetadata: {name: a}\n", "apiVersion"},
	"comment":         {"# ${V}\n" + configMap + "data: {kept: b}\n", ""},
	"end of a line":   {configMap + "data:\n  kept: b # ${V}\n  a: b\n", ""},
	"anchor":          {configMap + "data:\n  a: &a ${V}\n  kept: b\n", "data.a"},
	"lines":           {configMap + "data:\n  a: first\n    ${V}\n    last\n  kept: b\n", "data.a"},
	"line below":      {configMap + "data:\n  a:\n    ${V}\n  kept: b\n", "data.a"},
	"quoted lines":    {configMap + "data:\n  a: \"first\n    ${V}\n\n    last\"\n  kept: b\n", "data.a"},
	"tag":             {configMap + "data:\n  a: !!str ${V}\n  kept: b\n", "data.a"},
	"pair in a list":  {configMap + "data: {a: [x, k: ${V}], kept: b}\n", "data.a.1"},
	"list in a list":  {configMap + "data:\n  a:\n  - x\n  - - ${V}\n  kept: b\n", "data.a.1"},
	"list at margin":  {configMap + "data:\n- x\n- ${V}\nkept: b\n", "data.1"},
	"flow at margin":  {configMap + "data: {\n${V}: a,\nkept: b}\n", "data.*"},
	"list on a line":  {configMap + "data:\n  a:\n  - x\n  -\n    ${V}\n  - y\n  kept: b\n", "data.a.1"},
	"block's comment": {configMap + "data:\n  a: | # ${V}\n    c\n  kept: b\n", ""},
	"block's indent":  {configMap + "data:\n  a: |2\n    ${V}\n  kept: b\n", "data.a"},
	"block's end":     {configMap + "data:\n  a: |+\n    ${V}\n\n  kept: b\n", "data.a"},
	"flow's comment":  {configMap + "data: {a: b, # x # ${V}\n  kept: b}\n", ""},
	"line feeds": {
		strings.ReplaceAll(configMap+"data:\n  a: |-\n    ${V}\n    x\n  kept: b # $$ ${V}\n", "\n", "\r\n"), "data.a",
	},
	"signs":         {configMap + "data: {$$: '$${V}', a: \"${V}\", kept: $$b}\n", "data.a"},
	"anchor's name": {configMap + "data:\n  a: &${V} b\n  kept: b\n", ""},
}

// injections are values that look harmless, or try to change other fields than their own.
var injections = []string{
	"", "plain", "other", "kept", "a", "12", "true", "null", "~", "a #b", "# a", "*a", "&a", "&a b", "!x", "!!binary x",
	"|", ">", "%a", "@a", "`a", "-", "- a", "?", "? a", ":", ": b", "a:", "key: value", "{a: b}", "{a: b, a: c}", "[a, b]",
	"a, kept: c", "a, z: w", "a}", "a]", "a]}", "{", "[", "'", `"`, "it's", `"quoted"`, `a" z: "w`, `a", z: "w`,
	"a', z: 'w", `\`, "a\\n", "\t", " a ", "a\n", "\na", "a\nb", "a\n\n", "a\r", "a\rkept: c\r", "a\u2028kept: c",
	"a\n  kept: c", "a\n  kept: b", "a\n  a: c", "a\n  z: w", "a\n  - z", "a\n    b", "a\n      b", "\n    b: c",
	"|\n    a\n    b", "a\n    kept: c\n  z: |\n    ", "a\nkind: Secret", "ConfigMap\nkind: Secret", "a\nkind: ConfigMap",
	"a\nz: w", "a\nzz: |\n  x", "a\nmetadata: {name: b}", "a\ndata: {kept: c}", "a\ndata: {a: c, kept: b}",
	"{a: b}\nkept: c", "a\n---\nb: c", "a\n---", "a\n...\n", "a\n...\nb: c", "---", "...", "a\n--- b", "\ufeff",
	"a\ufeffb",
	"<<", "<<: {kept: c}", "a\n  <<: {z: w}", "a\n  <<: &z {kept: c}", "${V}", "{{ .Values }}", "<no value>",
	"capstan0mark0V", "capstan0mark0", "a: capstan0mark0V", "a\n  z: capstan0mark0V", "YQ==\nYQ==\n",
	`\u2029\uFEFF\U0001F600`, "größe→", "-9007199254740991", "1.50", "0x10", "1e3", "2026-01-02", "~\n",
	"-----BEGIN X-----\n    YQ==\n    -----END X-----\n", "-----BEGIN X-----\nYQ==\n-----END X-----\n",
}

// TestValuesChangeOnlyTheirFields: a value that changes only the field that contains it is installed as clusterctl
// would install it. All others are refused: those that clusterctl refuses, and those by which it would change another
// field or add an object.
func TestValuesChangeOnlyTheirFields(t *testing.T) {
	accepted, refused := 0, 0

	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			b := provider("odd", place.components)
			built, err := chartgen.Build(b)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			usual, err := clusterctlObjects(t.Context(), b, map[string]string{"V": "plain"})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			for _, value := range injections {
				g := NewWithT(t)
				values := map[string]string{"V": value}
				input := fmt.Sprintf("%q in\n%s", value, place.components)

				want, wantErr := clusterctlObjects(t.Context(), b, values)
				got, gotErr := chartObjects(built, values)
				checkSameRule(g, b, values, gotErr)

				// What could end a document, what Helm would change, and a key that has no effect because the object has it
				// anyway is refused even where it does no harm.
				special := gotErr != nil && (value == "<no value>" || strings.Contains(value, "<<") ||
					strings.Contains(value, "---") || strings.Contains(value, "...") || hasKeyTwice(g, b, values))

				if wantErr != nil || special || withoutField(g, want, place.path) != withoutField(g, usual, place.path) {
					g.Expect(gotErr).To(HaveOccurred(), input)

					refused++

					continue
				}

				if gotErr == nil {
					g.Expect(got).To(Equal(want), input)

					accepted++

					continue
				}

				// What is no longer an object with a name is refused, too.
				g.Expect(place.path).To(BeElementOf("kind", "apiVersion", "metadata.name", "metadata.namespace"),
					"%v: %s", gotErr, input)
			}
		})
	}

	t.Logf("%d accepted, %d refused", accepted, refused)
}

// hasKeyTwice reports whether with these values a map has a key twice, of which clusterctl takes the last one.
func hasKeyTwice(g Gomega, b *bundle.Bundle, values map[string]string) bool {
	text, err := expr.Parse(string(b.Components))
	g.Expect(err).NotTo(HaveOccurred())
	expanded, err := text.Expand(values)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = yaml.YAMLToJSONStrict([]byte(expanded))

	return err != nil && strings.Contains(err.Error(), "already set in map")
}

// checkSameRule checks that what is rendered by the operator itself follows the same rule as a chart.
func checkSameRule(g Gomega, b *bundle.Bundle, values map[string]string, chartErr error) {
	components, err := bundle.ParseComponents(b.Components)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = components.Documents[0].Decode(values, limit.NewFile())
	g.Expect(err != nil).To(Equal(chartErr != nil && strings.Contains(chartErr.Error(), "changes more than")),
		"%q: %v, but %v", values, err, chartErr)
}

// withoutField returns the objects in JSON without a field, whose path is in the only object.
func withoutField(g Gomega, objects map[string]string, path string) string {
	if len(objects) != 1 {
		return fmt.Sprint(len(objects), " objects")
	}

	var object map[string]any

	for _, text := range objects {
		g.Expect(json.Unmarshal([]byte(text), &object)).To(Succeed())
	}

	elements := strings.Split(path, ".")

	// The namespace is clusterctl's own.
	unstructured.RemoveNestedField(object, "metadata", "namespace")

	var parent any = object

	for _, element := range elements[:len(elements)-1] {
		parent, _ = parent.(map[string]any)[element]
	}

	switch parent := parent.(type) {
	case []any:
		if len(parent) > 1 {
			parent[1] = nil
		}
	case map[string]any:
		last := elements[len(elements)-1]
		if last == "*" && len(parent) != 2 {
			return "another number of entries"
		}

		for key := range parent {
			if key == last || last == "*" && key != "kept" {
				delete(parent, key)
			}
		}
	}

	data, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())

	return string(data)
}

// TestRealReleasesRefuseInjections: no variable of any release can turn an object into another one.
func TestRealReleasesRefuseInjections(t *testing.T) {
	const injection = "x\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n" +
		"metadata: {name: intruder}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: intruder}]\nzz: |\n  x"

	forEachRelease(t, func(t *testing.T, b *bundle.Bundle) {
		g := NewWithT(t)
		b.Components = withoutCRDs(b.Components)
		built, err := chartgen.Build(b)
		g.Expect(err).NotTo(HaveOccurred())

		required, all, err := chartgen.RequiredVariables(built)
		g.Expect(err).NotTo(HaveOccurred())

		for _, name := range all {
			values := map[string]string{}
			for _, other := range required {
				values[other] = "dGV4dA=="
			}

			values[name] = injection
			_, err := chartObjects(built, values)
			g.Expect(err).To(MatchError(ContainSubstring(
				": the value of variable %s changes more than the field that contains it; write it on one line", name)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("intruder")))
		}
	})
}

// TestRefusedValues: the message names the object, the variable and what to do, and not the value.
func TestRefusedValues(t *testing.T) {
	secret := strings.Replace(configMap, "ConfigMap", "Secret", 1)

	for name, c := range map[string]struct {
		components string
		values     map[string]string
		want       string
	}{
		"wrapped base64": {
			secret + "data:\n  a: ${A}\n  b: ${B}\n", map[string]string{"A": "aHVudGVy\naHVudGVy\n", "B": "YQ=="},
			"Secret target-namespace/a: the value of variable A changes more than the field that contains it; " +
				"write it on one line, as base64 -w0 does",
		},
		"a line break at the end": {
			secret + "stringData:\n  a: |\n    password: '${A}'\n", map[string]string{"A": "hunter\n"},
			"Secret target-namespace/a: the value of variable A changes more than the field that contains it; " +
				"remove the line break at its end",
		},
		"a quote": {
			secret + "data: {a: '${A}', b: '${B}'}\n", map[string]string{"A": "it's hunter", "B": "x"},
			"Secret target-namespace/a: the value of variable A changes more than the field that contains it; " +
				"write it as YAML requires in this place: in quotes, or with its quotes escaped",
		},
		"a number with more digits than Helm keeps": {
			secret + "data: {a: ['${B}', ${A}]}\n", map[string]string{"A": "9007199254740993", "B": "x"},
			"Secret target-namespace/a: the value of variable A changes more than the field that contains it; " +
				"write it as YAML requires in this place: in quotes, or with its quotes escaped",
		},
		"several": {
			"apiVersion: v1\nkind: Node\nmetadata: {name: a-${C:=c}}\nspec: {a: ${A}, b: ${B}}\n",
			map[string]string{"A": "*hunter", "B": "{hunter"},
			"Node a-c: the values of variables A, B change more than the fields that contain them; " +
				"write it as YAML requires in this place: in quotes, or with its quotes escaped",
		},
		"together": {
			secret + "data: {${A}${B}: a, hunter: b}\n", map[string]string{"A": "hun", "B": "ter"},
			"Secret target-namespace/a: the values of variables A, B change more than the fields that contain them; " +
				"write it as YAML requires in this place: in quotes, or with its quotes escaped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			built, err := chartgen.Build(provider("odd", c.components))
			g.Expect(err).NotTo(HaveOccurred())

			_, err = chartObjects(built, c.values)
			g.Expect(err).To(MatchError(HaveSuffix("): " + c.want)))
			g.Expect(err).NotTo(MatchError(Or(ContainSubstring("hunter"), ContainSubstring("aHVu"))))
		})
	}
}

// TestExpressionsThatAreNoFields: where an expression has no field of its own, its chart could not protect others from
// the value, so it is not built.
func TestExpressionsThatAreNoFields(t *testing.T) {
	for name, components := range map[string]string{
		"an entry":             configMap + "data:\n  a: b\n  ${V:=c: d}\n",
		"several items":        configMap + "data: {a: [${V:=b, c}]}\n",
		"a block's indicator":  configMap + "data:\n  a: |${V:=-}\n    b\n",
		"a tag":                configMap + "data: {a: !!int ${V:=1}}\n",
		"an alias":             configMap + "data: {a: &x b, c: *${V:=x}}\n",
		"two objects together": configMap + "data: {a: b\n${V:=,c: d}\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chartgen.Build(provider("odd", components))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("components.yaml line 1: ConfigMap a: an expression of V " +
				"is neither a value, nor a key, nor a part of one; use it as one only")))
		})
	}
}
