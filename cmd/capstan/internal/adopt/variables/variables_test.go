package variables

import (
	"encoding/base64"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// deployment is a Deployment with fields of the manager's container, and secret a Secret with fields.
const (
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: x-system}, spec: ` +
		`{template: {spec: {containers: [{name: proxy, image: registry.example.com/x/proxy:v1, args: ["--v=1"]}, ` +
		`{name: manager, image: registry.example.com/x/y:v1, `
	end    = `}]}}}}`
	secret = `{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: x-system}, `
)

// newTemplate returns the template of components.
func newTemplate(t *testing.T, components string) *Template {
	t.Helper()

	g := NewWithT(t)
	c, err := chartgen.Build(&bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "x", Label: "infrastructure-x"},
		Version:    "v1.0.0",
		Components: []byte(components),
		Metadata: []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
			"releaseSeries: [{major: 1, minor: 0, contract: v1beta1}]\n"),
	})
	g.Expect(err).NotTo(HaveOccurred())

	template, err := NewTemplate(c, "x-system")
	g.Expect(err).NotTo(HaveOccurred())

	return template
}

// apply returns what the API server stores of an object: Secrets without stringData, and no empty fields.
func apply(o *unstructured.Unstructured) {
	texts, _, _ := unstructured.NestedStringMap(o.Object, "stringData")
	for key, text := range texts {
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		_ = unstructured.SetNestedField(o.Object, encoded, "data", key)
	}

	delete(o.Object, "stringData")
}

func TestRecover(t *testing.T) {
	for name, c := range map[string]struct {
		components string
		// installed are the variables that the provider was installed with, and edited its live objects if users
		// have changed them since.
		installed map[string]string
		edit      func(*unstructured.Unstructured)

		want    map[string]string
		unknown []Unknown
	}{
		"a whole value": {
			components: secret + `data: {credentials: "${CREDENTIALS}"}}`,
			installed:  map[string]string{"CREDENTIALS": "c2VjcmV0"},
			want:       map[string]string{"CREDENTIALS": "c2VjcmV0"},
		},
		"parts of the text of a Secret": {
			components: secret + `stringData: {config: "user = ${USER}\npassword = ${PASSWORD}\nregion = ${REGION:=eu}\n"}}`,
			installed:  map[string]string{"USER": "jane", "PASSWORD": `a\"b\\c`, "REGION": "us"},
			want:       map[string]string{"USER": "jane", "PASSWORD": `a\"b\\c`, "REGION": "us"},
		},
		"an empty value": {
			components: secret + `stringData: {token: "${TOKEN}"}}`,
			installed:  map[string]string{"TOKEN": ""},
			want:       map[string]string{"TOKEN": ""},
		},
		"flags": {
			components: deployment + `args: ["--leader-elect", ` +
				`"--feature-gates=A=${EXP_A:=false},B=${EXP_B:=true}", "--v=${LEVEL:=0}"]` + end,
			installed: map[string]string{"EXP_A": "true", "LEVEL": "4"},
			want:      map[string]string{"EXP_A": "true", "LEVEL": "4"},
		},
		"defaults": {
			components: deployment + `args: ["--feature-gates=A=${EXP_A:=false}", "--v=${LEVEL:=0}"]` + end,
		},
		"a number": {
			components: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: x-system}, spec: ` +
				`{replicas: "${REPLICAS:=1}", template: {spec: {hostNetwork: ${HOST:=false}}}}}`,
			installed: map[string]string{"REPLICAS": "2", "HOST": "true"},
			want:      map[string]string{"REPLICAS": "2", "HOST": "true"},
		},
		"a list": {
			components: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: x-system}, spec: ` +
				`{template: {spec: {tolerations: ${TOLERATIONS:=[]}}}}}`,
			installed: map[string]string{"TOLERATIONS": `[{"key": "a"}]`},
			want:      map[string]string{"TOLERATIONS": `[{"key":"a"}]`},
		},
		"a container and a flag that were added": {
			components: deployment + `env: [{name: REGION, value: "${REGION}"}], args: ["--a=${A}"]` + end,
			installed:  map[string]string{"REGION": "eu", "A": "1"},
			edit: func(o *unstructured.Unstructured) {
				containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				manager := containers[1].(map[string]any)
				manager["args"] = append([]any{"--added"}, manager["args"].([]any)...)
				manager["env"] = append([]any{map[string]any{"name": "ADDED"}}, manager["env"].([]any)...)
				containers = append([]any{map[string]any{"name": "added"}}, containers...)
				_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
			},
			want: map[string]string{"REGION": "eu", "A": "1"},
		},
		"a field that a user has changed": {
			components: deployment + `args: ["--a=${A}"]` + end,
			installed:  map[string]string{"A": "1"},
			edit: func(o *unstructured.Unstructured) {
				containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				containers[1].(map[string]any)["args"] = []any{"--b", "--c"}
				_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
			},
			unknown: []Unknown{{Name: "A", Required: true,
				Reason: "Deployment manager: spec.template.spec.containers.args has no such item, or several"}},
		},
		"values that cannot be told apart": {
			components: secret + `stringData: {config: "${USER}-${PASSWORD}"}}`,
			installed:  map[string]string{"USER": "a-b", "PASSWORD": "c"},
			unknown: []Unknown{
				{"PASSWORD", true, "Secret credentials: stringData.config does not show where the value ends"},
				{"USER", true, "Secret credentials: stringData.config does not show where the value ends"},
			},
		},
		"different values": {
			components: secret + `stringData: {a: "${USER}", b: "x ${USER}"}}`,
			installed:  map[string]string{"USER": "a"},
			edit: func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "eCBi", "data", "b") // x b
			},
			unknown: []Unknown{{"USER", true, "different objects show different values"}},
		},
		"a value that is changed by an expression": {
			components: secret + `stringData: {a: "${USER:0:1}", b: "${#NAME}"}}`,
			installed:  map[string]string{"USER": "jane", "NAME": "x"},
			unknown: []Unknown{
				{"NAME", true, "no object shows its value"}, {"USER", false, "no object shows its value"},
			},
		},
		"no object": {
			components: secret + `data: {credentials: "${CREDENTIALS}"}}`,
			edit:       func(o *unstructured.Unstructured) { o.Object = nil },
			unknown:    []Unknown{{"CREDENTIALS", true, "Secret credentials does not exist"}},
		},
		"a default that contains a variable": {
			components: secret + `stringData: {a: "${A:=${B:=c}}"}}`,
			installed:  map[string]string{"B": "d"},
			want:       map[string]string{"A": "d"},
			unknown:    []Unknown{{"B", false, "no object shows its value"}},
		},
		"the mark of another variable in a value": {
			components: secret + `stringData: {a: "${A}", b: "capstanmark7end"}}`,
			installed:  map[string]string{"A": "capstanmark5end"},
			want:       map[string]string{"A": "capstanmark5end"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := newTemplate(t, c.components)

			rendered, err := template.render(c.installed)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rendered).To(HaveLen(1))

			live := rendered[0]
			apply(live)

			if c.edit != nil {
				c.edit(live)
			}

			result := template.Recover(func(o *unstructured.Unstructured) *unstructured.Unstructured {
				if live.Object == nil {
					return nil
				}

				g.Expect(o.GetName()).To(Equal(live.GetName()))

				return live
			})

			if len(c.want) == 0 {
				g.Expect(result.Values).To(BeEmpty())
			} else {
				g.Expect(result.Values).To(Equal(c.want))
			}

			g.Expect(result.Unknown).To(Equal(c.unknown))
		})
	}
}

// TestRecoverReturnsTheSame checks for the sample providers that the chart with the recovered values is the one
// that was installed, when all variables were set.
func TestRecoverReturnsTheSame(t *testing.T) {
	g := NewWithT(t)
	template := newTemplate(t, deployment+`args: ["--a=${A:=1}", "--b=${B:=2},${C:=3}"]`+end+"\n---\n"+
		secret+`stringData: {a: "${A:=1}/${D}"}}`)
	installed := map[string]string{"A": "x", "B": "y", "C": "3", "D": "z"}

	before, err := template.render(installed)
	g.Expect(err).NotTo(HaveOccurred())

	result := template.Recover(func(o *unstructured.Unstructured) *unstructured.Unstructured {
		for _, live := range before {
			if live.GetKind() == o.GetKind() {
				stored := live.DeepCopy()
				apply(stored)

				return stored
			}
		}

		return nil
	})
	g.Expect(result.Unknown).To(BeEmpty())

	after, err := template.render(result.Values)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(before))
}
