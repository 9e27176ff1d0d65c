package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
)

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, namespace: capx}\n"
	secret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: creds, namespace: capx}\n"
)

// secretPlaces are components in which the variable V is in many places, some of which are no texts.
var secretPlaces = map[string]string{
	"plain":         secret + "stringData:\n  a: ${V}\n  b: c\n",
	"part":          secret + "stringData:\n  a: user:${V}@host\n",
	"data":          secret + "data:\n  a: ${V}\n  b.c: ${V}\n",
	"single quotes": secret + "stringData:\n  a: '${V}'\n",
	"double quotes": secret + "stringData:\n  a: \"${V}\"\n",
	"embedded":      secret + "stringData:\n  a.yaml: |-\n    password: '${V}'\n",
	"folded":        secret + "stringData:\n  a: >\n    ${V}\n",
	"flow":          secret + "stringData: {a: ${V}, b: [${V}]}\n",
	"key":           secret + "stringData:\n  ${V}: a\n",
	"map":           secret + "stringData: ${V}\n",
	"comment":       "# ${V}\n" + secret,
	"end":           secret + "stringData: {a: b} # ${V}\n",
	"label":         "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {a: \"${V}\", b: b-${V}}}\n",
	"labels":        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: ${V}}\n",
	"annotations":   "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: ${V}}\n",
	"namespace":     "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: ${V}}\n",
	"kind":          "apiVersion: v1\nkind: ${V}\nmetadata: {name: a}\n",
	"metadata":      "apiVersion: v1\nkind: Secret\nmetadata: ${V:={name: a}}\n",
	"certificate": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
		"metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: ${V}}}\n",
	"webhooks": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
		"metadata: {name: a}\nwebhooks: ${V}\n",
	"service": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
		"metadata: {name: a}\nwebhooks: [{clientConfig: {service: ${V}}}]\n",
	"subjects": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nsubjects: ${V}\n",
	"subject":  "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nsubjects: [\"${V}\"]\n",
	"DNS names": "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a}\n" +
		"spec: {dnsNames: ${V:=[a]}}\n",
	"spec":       deployment + "spec: ${V:={template: {spec: {containers: []}}}}\n",
	"containers": deployment + "spec: {template: {spec: {containers: ${V:=[]}}}}\n",
	"container":  deployment + "spec: {template: {spec: {containers: [\"${V}\"]}}}\n",
	"image":      deployment + "spec: {template: {spec: {containers: [{name: m, image: \"${V}\"}]}}}\n",
	"argument":   deployment + "spec: {template: {spec: {containers: [{name: m, image: a.b/c, args: [--v=${V}]}]}}}\n",
	"replicas":   deployment + "spec: {replicas: ${V:=1}, template: {spec: {containers: []}}}\n",
}

// secretTemplates are templates of charts that Capstan did not build.
var secretTemplates = map[string]string{
	"not YAML":         "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: {{ .Values.variables.V }}\n",
	"fail":             `{{ fail (printf "not accepted: %s" .Values.variables.V) }}`,
	"fail with quotes": `{{ fail (printf "not accepted: %q" .Values.variables.V) }}`,
	"a parser's text":  `{{ with (.Values.variables.V | fromYaml).Error }}{{ fail . }}{{ end }}`,
	"JSON":             `{{ with (.Values.variables.V | fromJson).Error }}{{ fail (printf "not it: %s" .) }}{{ end }}`,
	"range":            `{{ range .Values.variables.V }}{{ end }}`,
	"in an include":    `{{ define "x" }}{{ range . }}{{ end }}{{ end }}{{ include "x" .Values.variables.V }}`,
	"tpl":              `{{ tpl .Values.variables.V . }}{{ tpl (printf "{{ %s" .Values.variables.V) . }}`,
	"a field":          `{{ .Values.variables.V.a.b }}`,
	"an unknown name":  `{{ include .Values.variables.V . }}`,
	"a pattern":        `{{ mustRegexMatch (printf "[%s" .Values.variables.V) "a" }}`,
	"a date":           `{{ mustToDate "2006-01-02" .Values.variables.V }}`,
	"a version":        `{{ semverCompare .Values.variables.V "1.0.0" }}`,
}

// core is the secret part of secretValues, of which no four characters are part of any message.
const core = "Zq7Xw9KvHb3Ny5Tr"

// secretValues returns values that are no valid YAML in some places, or something else than a text.
func secretValues() []string {
	values := []string{
		core, "'" + core, `"` + core, core + "'", core + `"`, "it's " + core, `\` + core, core + `\`, `"\` + core + `"`,
		"87519346", "8751934.6200", "0x8751ABCD", core + "\n", "\n" + core, core + "\n" + core, core + ": " + core,
		core + " #" + core, "{" + core, "[" + core, core + "}", core + "]", "[" + core + "]", "{" + core + ": " + core + "}",
		`{"` + core + `": ["` + core + `", 87519346]}`, "- " + core, "? " + core, "a: " + core + "\nb: [" + core,
		"WnE3WHc5S3ZIYjNOeTVUcg==", "WnE3WHc5S3ZI\nYjNOeTVUcg==\n", core + "\n---\n" + core, core + "\n...\n" + core,
		core + "\nkind: " + core, "-----BEGIN " + core + "-----\nWnE3WHc5\n-----END " + core + "-----\n", "\t" + core,
		"!!binary " + core, "!" + core, "&" + core + " *" + core + "x", "<<: " + core, "größe" + core, "\x01" + core,
		"{{ " + core, "a.b/" + core, core + "@" + core + ":87519346", "\u2028" + core, "\ufeff" + core,
	}

	for _, indicator := range "-?:,[]{}#&*!|>'\"%@`<=~^$+." {
		values = append(values, string(indicator)+core)
	}

	return values
}

// TestMessagesContainNoPartsOfValues: whatever a variable's value is, and wherever it is used, what is reported of a
// chart that cannot be rendered has no part of it.
func TestMessagesContainNoPartsOfValues(t *testing.T) {
	charts := map[string]*chart.Chart{}

	for name, components := range secretPlaces {
		built, err := chartgen.Build(&bundle.Bundle{
			Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "x", Label: "infrastructure-x"},
			Version:    "v1.0.0",
			Components: []byte(components),
			Metadata: []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
				"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"),
		})
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), name)

		charts[name] = built
	}

	metadata := chart.Metadata{APIVersion: "v2", Name: "other", Version: "1.0.0"}
	pattern := `{"properties": {"variables": {"properties": {"V": {"pattern": "^a$", "maxLength": 3, "enum": ["a"]}}}}}`
	files := map[string]chart.File{"a schema": {Name: chart.SchemaFile, Data: []byte(pattern)}}

	for name, template := range secretTemplates {
		files["template: "+name] = chart.File{Name: chart.TemplatesDir + "a.yaml", Data: []byte(template)}
	}

	for name, file := range files {
		other, err := chart.New(metadata, []chart.File{file})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		charts[name] = other
	}

	for _, name := range slices.Sorted(maps.Keys(charts)) {
		t.Run(name, func(t *testing.T) {
			refused := 0

			for _, value := range secretValues() {
				err := renderWith(charts[name], value)
				if err == nil {
					continue
				}

				refused++

				for _, part := range partsOf(value) {
					NewWithT(t).Expect(err.Error()).NotTo(ContainSubstring(part), "%q", value)
				}
			}

			t.Logf("%d of %d refused", refused, len(secretValues()))
		})
	}
}

// renderWith renders a chart with a value of the variable V, and returns the error that is shown.
func renderWith(c *chart.Chart, value string) error {
	spec := Spec{Chart: c, Values: map[string]any{"variables": map[string]any{"V": value}}}
	files := make([]*helm.BufferedFile, 0, len(c.Files))

	for _, f := range c.Files {
		files = append(files, &helm.BufferedFile{Name: f.Name, Data: f.Data})
	}

	loaded, err := helm.Load(files)
	if err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}

	rendered, err := helm.Render(loaded, spec.Values, helm.ReleaseOptions{Namespace: "ns"})
	if err != nil {
		return spec.renderError(err)
	}

	content, _, err := helm.Manifest(c.Metadata.Name, rendered)
	if err != nil {
		return spec.renderError(err)
	}

	_, err = spec.postRender(content)

	return err
}

// partsOf returns all parts of a value that have four characters and are letters and digits.
func partsOf(value string) []string {
	var parts []string

	words := strings.FieldsFunc(value, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	for _, word := range words {
		for i := 0; i+4 <= len(word); i++ {
			parts = append(parts, word[i:i+4])
		}
	}

	return parts
}
