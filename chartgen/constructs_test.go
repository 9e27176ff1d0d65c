package chartgen_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// constructs are unusual parts of components that real providers publish.
var constructs = map[string]string{
	"a variable in a default": configMap + "data: {a: '${A}', b: \"${B:=${A}}\"}\n",
	"variables in defaults in each other": configMap +
		"data: {a: 'x-${A:=${B:-y-${ C }$}-${D/#x/y}z}', b: '$$ ${B}', c: \"${C:=$$}\"}\n",
	"a variable that only defaults contain": configMap + "data: {a: '${A:=${B:=c}}', b: '${A:-${B}}'}\n",
	"an end marker":                         configMap + "...\n---\n" + crdWith("a") + "...\n",
	"end markers and comments": configMap + "data: {a: \"${A:=...}\"}\n...  # end\n\n... \r\n# more\n---\n" +
		strings.Replace(configMap, "name: a", "name: b", 1) + "...",
	"a default after =": configMap + "data:\n  a: |\n    {\"port\": ${PORT=9440}, \"user\": \"${USER=}\"}\n" +
		"binaryData: {ca.crt: \"${CA=''}\"}\n",
	"JSON in a text": configMap + "data:\n  a: |\n    {\n      \"a\": {\"b\": [\"$${C}\", \"$D\"]}\n    }\n",
	"labels of null": strings.Replace(configMap, "name: a", "name: a, labels: null, annotations: null", 1),
	"comments in a row": "# Source: a\n---\n# Source: b\n---\n---\n" + configMap +
		"---\n# Source: c\n---\n\n# Source: d\n---\n",
	"a default of one blank": deploymentWith("args: ['--clusters=${A:= }', \"--x=y\"]"),
	"a blank at the end of an item": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n" +
		"  template:\n    spec:\n      containers:\n      - name: manager\n        image: a.b/c\n" +
		"        args:\n        - --clusters=${A:= }\n        - --x=${B:=${A:=:8443}}\n",
	"a name in lower case":     configMap + "data: {a: '${ClusterTopology:=false}', b: '${cluster_topology}'}\n",
	"a variable in a strategy": deploymentHead + "}]}}, strategy: {type: '${STRATEGY:=RollingUpdate}'}}\n",
}

// TestConstructs: with unusual components, Helm renders the objects that clusterctl applies, and requires the same
// variables.
func TestConstructs(t *testing.T) {
	for name, components := range constructs {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := provider("odd", components)
			built, err := chartgen.Build(b)
			g.Expect(err).NotTo(HaveOccurred())

			required, all, err := chartgen.RequiredVariables(built)
			g.Expect(err).NotTo(HaveOccurred())

			defaults := map[string]string{}
			for _, name := range required {
				defaults[name] = "given"
			}

			compareOnce(t, "defaults", b, built, defaults)

			for _, name := range required {
				without := maps.Clone(defaults)
				delete(without, name)

				_, err = clusterctlObjects(t.Context(), b, without)
				g.Expect(err).To(MatchError(ContainSubstring("[" + name + "]")))
				_, err = chartObjects(built, without)
				g.Expect(err).To(MatchError(ContainSubstring("'" + name + "'")))
			}

			for _, kind := range slices.Sorted(maps.Keys(assignments)) {
				for _, name := range all {
					if kind == "indented" {
						continue // it changes another field, which a chart refuses
					}

					with := maps.Clone(defaults)
					with[name] = assignments[kind](name)

					compareOnce(t, kind+" "+name, b, built, with)
				}
			}
		})
	}
}

// TestRefusedValuesInDefaults: the message names the variable whose value is wrong, also if only the default of another
// one contains it.
func TestRefusedValuesInDefaults(t *testing.T) {
	const components = configMap + "data: {a: \"${A:=x-${B:=${C}}}\", d: \"${D}\"}\n"

	for wrong, values := range map[string]map[string]string{
		"A": {"A": `hunter"2`, "B": `hunter"2`, "D": "d"},
		"B": {"B": `hunter"2`, "C": `hunter"2`, "D": "d"},
		"C": {"C": `hunter"2`, "D": "d"},
		"D": {"C": "c", "D": `hunter"2`},
	} {
		t.Run(wrong, func(t *testing.T) {
			g := NewWithT(t)
			want := ContainSubstring("the value of variable %s changes more than the field that contains it", wrong)

			built, err := chartgen.Build(provider("odd", components))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = chartObjects(built, values)
			g.Expect(err).To(MatchError(And(want, Not(ContainSubstring("hunter")))))

			parsed, err := bundle.ParseComponents([]byte(components))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = parsed.Documents[0].Decode(values, limit.NewFile())
			g.Expect(err).To(MatchError(And(want, Not(ContainSubstring("hunter")))))
		})
	}
}

// TestValuesOfContainers: what is no text in a container is refused with the expression and its variable, as clusterctl
// refuses it in a Deployment. The API server would not say where it comes from.
func TestValuesOfContainers(t *testing.T) {
	const pod = "      containers:\n      - name: manager\n        image: a.b/c\n        args:\n" +
		"        - --address=${A:=:8443}\n        - ${B:=b}\n        command: [\"${C:=c}\", '${E:=${C}}', \"${EF}\"]\n" +
		"        env:\n        - name: D\n          value: ${D}\n        - name: DD\n          value: ${DD:=${F:=}}\n"

	for _, kind := range []string{"Deployment", "StatefulSet"} {
		b := provider("odd", "apiVersion: apps/v1\nkind: "+kind+
			"\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"+pod)
		built, err := chartgen.Build(b)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, c := range []struct{ variable, value, written, field string }{
			{"A", "hunter: b # c", "${A:=:8443}", "args"},
			{"B", "[hunter]", "${B:=b}", "args"},
			{"B", "{hunter: a}", "${B:=b}", "args"},
			{"B", "8443", "${B:=b}", "args"},
			{"D", "true", "${D}", "value"},
			{"D", "[hunter, a]", "${D}", "value"},
			{"DD", "{hunter: a}", "${DD:=${F:=}}", "value"},
			{"F", "{hunter: a}", "${DD:=${F:=}}", "value"},
			{"D", "", "", ""},
			{"D", `"true"`, "", ""},
			{"A", "hunter:8443", "", ""},
			{"EF", "8443", "", ""},
		} {
			g := NewWithT(t)
			values := map[string]string{"D": "x", "EF": "x"}
			values[c.variable] = c.value

			_, err = chartObjects(built, values)
			if c.written == "" {
				g.Expect(err).NotTo(HaveOccurred())
				continue
			}

			variables := c.variable
			if strings.Contains(c.written, "F") {
				variables = "DD or F"
			}

			g.Expect(err).To(MatchError(HaveSuffix(
				"): %s target-namespace/a: the expression %s is no text in the field %s with the given value of variable %s; "+
					"write it as YAML requires in this place: in quotes, or without a colon before a blank",
				kind, c.written, c.field, variables)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter")))

			if kind == "Deployment" {
				_, err = clusterctlObjects(t.Context(), b, values)
				g.Expect(err).To(HaveOccurred(), c.value)
			}
		}
	}
}
