package release

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/release/manifest"
)

const (
	inQuotes = "expected a text: put it in quotes"

	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, namespace: capx}\n"
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: capx}\n"
	secret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: creds, namespace: capx}\n"
	custom     = "apiVersion: example.org/v1\nkind: Widget\n"
)

func TestCheckMistyped(t *testing.T) {
	defaults := map[string]any{"variables": map[string]any{"LEVEL": "4", "DEBUG": "false", "PORT": "80"}}
	values := map[string]any{
		"variables": map[string]any{"PORT": "8443", "NAME": "one", "EXACT": "0o10", "BROKEN": "{",
			"PLAIN": "plain-text", "JSON": `{"c": [1]}`},
		"plain": map[string]any{"number": 17, "list": []any{8443}},
	}

	env := func(value string) string {
		return deployment + "spec: {template: {spec: {containers: [{name: m, env: " +
			"[{name: A, value: one}, {name: B, value: " + value + "}]}]}}}\n"
	}
	inEnv := func(found string) string {
		return "Deployment capx/manager: the field spec.template.spec.containers.env.value is " + found + ", " + inQuotes
	}

	for _, c := range []struct{ name, manifest, want string }{
		{"right types", env(`"8443"`) + "---\n" + configMap + "data: {a: \"1\"}\n", ""},
		{"a field that the kind does not have", deployment + "spec: {unknown: 1}\n", ""},
		{"fields of an unknown kind", custom + "metadata: {name: w}\nspec: {a: 1, data: {b: true}}\n", ""},
		{"quantities, ports and times", deployment + "spec: {template: {spec: {containers: [{name: m, resources: " +
			"{limits: {cpu: 1, memory: 1Gi}}, livenessProbe: {httpGet: {port: web}}}]}}}\n", ""},

		{"a variable", env("8443"), inEnv("a number") + "; it comes from the variable PORT"},
		{"a default", env("false"), inEnv("a boolean") + "; it comes from the variable DEBUG"},
		{"a default that was replaced", env("80"), inEnv("a number")},
		{"a value of another chart", env("17"), inEnv("a number") + "; it comes from the value plain.number"},
		{"an unknown cause", env("1.5"), inEnv("a number")},
		{"a text", deployment + "spec: {replicas: one}\n", "Deployment capx/manager: the field spec.replicas is a text, " +
			"expected a whole number without quotes; it comes from the variable NAME"},
		{"a map", env("{a: b}"), inEnv("a map")},
		{"a map from a variable", env("{c: [1]}"), inEnv("a map") + "; it comes from the variable JSON"},
		{"a text that is not base64", secret + "data: {a.b: YQ==, c.d: plain-text}\n", "Secret capx/creds: the field " +
			"data.c.d is a text, expected one in base64: encode it with base64 -w0; it comes from the variable PLAIN"},
		{"a map that is not base64", secret + "data: {a: {c: [1]}}\n", "Secret capx/creds: the field data is a map, " +
			"expected a text in base64: encode it with base64 -w0; it comes from the variable JSON"},

		{"the key of a map", configMap + "data: {key: 4, other: \"4\"}\n",
			"ConfigMap capx/config: the field data is a number, " + inQuotes + "; it comes from the variable LEVEL"},
		{"metadata of an unknown kind", custom + "metadata: {name: w, labels: {level: 4}}\n",
			"Widget w: the field metadata.labels is a number, " + inQuotes + "; it comes from the variable LEVEL"},
		{"several objects", env("8443") + "---\n" + configMap + "data: {debug: false}\n",
			inEnv("a number") + "; it comes from the variable PORT; ConfigMap capx/config: the field data is a boolean, " +
				inQuotes + "; it comes from the variable DEBUG"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)

			objects, err := manifest.Decode(c.manifest)
			g.Expect(err).NotTo(HaveOccurred())

			err = checkMistyped(objects, defaults, values)
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(c.want))
		})
	}
}

// TestManyCausesOfMistyped makes sure that no cause is named rather than most values of a chart.
func TestManyCausesOfMistyped(t *testing.T) {
	g := NewWithT(t)

	objects, err := manifest.Decode(configMap + "data: {debug: true}\n")
	g.Expect(err).NotTo(HaveOccurred())

	values := map[string]any{"c": true, "a": "true", "b": true}
	g.Expect(checkMistyped(objects, nil, values)).To(MatchError(
		HaveSuffix("it comes from the value a or the value b or the value c")))

	values["d"] = "true"
	g.Expect(checkMistyped(objects, nil, values)).To(MatchError(HaveSuffix(inQuotes)))
}

// BenchmarkCheckMistyped checks a provider with 30 objects.
func BenchmarkCheckMistyped(b *testing.B) {
	var text strings.Builder

	for i := range 15 {
		fmt.Fprintf(&text, "%sspec: {template: {spec: {containers: [{name: m%d, args: [a, b, c], "+
			"env: [{name: A, value: b}]}]}}}\n---\n%sdata: {a: \"1\"}\n---\n", deployment, i, configMap)
	}

	b.ReportAllocs()

	for b.Loop() {
		objects, err := manifest.Decode(text.String())
		if err != nil || len(objects) != 30 {
			b.Fatal(len(objects), err)
		}

		if err := checkMistyped(objects, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
