package render_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/render"
)

// TestRenderHostileCharts: whatever a chart that could be built contains, and whatever the values are, rendering it
// takes some seconds at most, or is refused.
func TestRenderHostileCharts(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"

	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [" +
		numbered(9900, "{name: m%d, image: a.b/c},") + "]}}}"

	for name, c := range map[string]struct {
		components string
		value      string
		refusal    string
	}{
		"texts at the limit":      {configMap + "  a: " + strings.Repeat("x", 4<<20-200) + "\n", "", ""},
		"containers at the limit": {deployment, "", ""},
		"expressions in keys at the limit": {
			configMap + "  a: ${V}\n" + numbered(990, "  a${A%d:=a%[1]d}: ["+strings.Repeat("[x],", 13)+"]\n"), "x", "",
		},
		"expressions in keys below each other": {
			configMap + "  a: ${V}\n  b: " + strings.Repeat("{'${A:=a}': [", 45) + strings.Repeat("]}", 45), "x", "",
		},
		"a large value in many places": {
			configMap + numbered(900, "  a%d: ${V}\n"), strings.Repeat("x", 64<<10),
			"the values of variables up to V are larger than 4 MiB where they are used; shorten them",
		},
		"a value with lists": {
			configMap + "  a: ${V}\n", "[" + strings.Repeat("[],", 40<<10) + "]", "",
		},
		"a deep value": {
			configMap + numbered(10, "  a%d: ${V}\n"), strings.Repeat("{a: ", 2000) + strings.Repeat("}", 2000),
			"ConfigMap a: with the values of its variables, it has more than 100 levels of lists and maps",
		},
		"a value with a list at the last level": {
			configMap + numbered(10, "  a%d: ${V}\n"),
			strings.Repeat("[", 90) + strings.Repeat("x,", 90000) + strings.Repeat("]", 90),
			"ConfigMap a: with the values of its variables, it brings the total to more than 300000 values; shorten them",
		},
		"a value with many lines": {
			configMap + strings.Repeat("  a: {", 90) + `b: "${V}"` + strings.Repeat("}", 90), strings.Repeat(`x\n`, 300<<10),
			"with the values of variables, the objects up to here are larger than 16 MiB once all lines are indented",
		},
		"a value with aliases": {
			configMap + "  a: ${V}\n", aliasBomb(),
			"changes more than the field that contains it",
		},
		"a value with documents": {
			configMap + "  a: ${V}\n", "b\n" + strings.Repeat("---\nkind: Secret\n", 1000),
			"changes more than the field that contains it",
		},
		"many variables, of which one is wrong": {
			configMap + numbered(990, "  a%[1]d: ${V%[1]d:=b}\n") + "  a: ${V}\n", "b\nc: d",
			"the value of variable V changes more than the field that contains it",
		},
		"variables in defaults at the limit": {
			configMap + numbered(390, "  a%[1]d: ${V%[1]d:="+strings.Repeat("${V:=", 18)+"x"+strings.Repeat("}", 19)+"\n"),
			"", "",
		},
		"a large value in many defaults": {
			configMap + numbered(390, "  a%[1]d: ${A%[1]d:=${B:=${V}}}\n"), strings.Repeat("x", 64<<10),
			"the values of variables up to V are larger than 4 MiB where they are used; shorten them",
		},
		"a default of many variables": {
			configMap + "  a: ${A:=" + strings.Repeat("${V}", 2000) + "}\n", "x", "",
		},
		"no UTF-8": {configMap + "  a: ${V}\n", "\xff", "the value of variable V is not valid UTF-8; encode it in base64"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			built := buildText(g, c.components)

			values := map[string]any{}
			if c.value != "" {
				values["variables"] = map[string]any{"V": c.value}
			}

			start := time.Now()
			_, err := render.Render(built, values, helm.ReleaseOptions{Name: "x", Namespace: "x"})
			t.Logf("%v: %.200v", time.Since(start), err)
			g.Expect(time.Since(start)).To(BeNumerically("<", 3*time.Minute), "it usually takes some seconds")

			if c.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.refusal)))
			}
		})
	}
}

// TestRenderHostileDeployments: the changes of a Deployment are refused if they would be made many times.
func TestRenderHostileDeployments(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b%d}\n" +
		"spec: {template: {spec: {containers: ["

	for name, c := range map[string]struct {
		components string
		settings   map[string]any
		refusal    string
	}{
		"Deployments with the same name": {
			numbered(900, head+"{name: m, image: a.b/c}]}}}\n---\n"),
			map[string]any{"nodeSelector": map[string]any{"a": strings.Repeat("x", 64<<10)}},
			"the changes of Deployments up to a are larger than 4 MiB where they are used; shorten them",
		},
		"containers with the same name": {
			numbered(1, head) + strings.Repeat("{name: m, image: a.b/c},", 9000) + "]}}}",
			map[string]any{"containers": map[string]any{"m": map[string]any{"command": []any{strings.Repeat("x", 64<<10)}}}},
			"deployments.a.containers: the Deployment has several containers m, of which none can be changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := map[string]any{"deployments": map[string]any{"a": c.settings}}

			_, err := render.Render(buildText(g, c.components), values, helm.ReleaseOptions{Name: "x", Namespace: "x"})
			g.Expect(err).To(MatchError(ContainSubstring(c.refusal)))
		})
	}
}

// TestRenderRefusesUnlistedExpressions: an expression in an object that was edited after the chart was built is not
// left as it is.
func TestRenderRefusesUnlistedExpressions(t *testing.T) {
	g := NewWithT(t)
	built := buildText(g, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '${A:=a}'}\n")

	for i, f := range built.Files {
		if strings.HasPrefix(f.Name, "objects/") {
			built.Files[i].Data = bytes.Replace(f.Data, []byte("'${A:=a}'"), []byte("'${A:=a}', b: '$$ ${B:=b}'"), 1)
		}
	}

	_, err := render.Render(built, nil, helm.ReleaseOptions{Name: "x", Namespace: "x"})
	g.Expect(err).To(MatchError(ContainSubstring(`files/objects.json does not list the expression at "${B:=b}'}"; build`)))
}

// buildText builds the chart of components.
func buildText(g Gomega, components string) *chart.Chart {
	built, err := chartgen.Build(&bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "x", Label: "infrastructure-x"},
		Version:    "v1.0.0",
		Components: []byte(components),
		Metadata: []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
			"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"),
	})
	g.Expect(err).NotTo(HaveOccurred())

	return built
}

// aliasBomb returns a list that expands to 9^7 texts.
func aliasBomb() string {
	items := []string{"&a0 [x, x, x, x, x, x, x, x, x]"}

	for level := range 6 {
		alias := fmt.Sprintf("*a%d", level)
		items = append(items, fmt.Sprintf("&a%d [%s%s]", level+1, strings.Repeat(alias+", ", 8), alias))
	}

	return "[" + strings.Join(items, ", ") + "]"
}

// numbered returns texts from a format with the numbers from 0.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}

	return b.String()
}
