package patches_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/patches"
)

// withSecret returns a manifest with a Secret and a Deployment, whose pods have the lines in their
// template and in their spec.
func withSecret(data, template, pod string) string {
	return "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: credentials\n" + data +
		"---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: manager\n  namespace: tiny\nspec:\n" +
		"  template:\n" + template + "    spec:\n" + pod
}

// decoded returns the objects of a manifest as they are read from a release.
func decoded(g Gomega, manifests ...string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured

	for _, manifest := range manifests {
		for text := range strings.SplitSeq(strings.TrimPrefix(manifest, "---\n"), "---\n") {
			if text == "" {
				continue
			}

			o := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())
			o.SetNamespace("tiny")
			objects = append(objects, o)
		}
	}

	return objects
}

func TestRestarting(t *testing.T) {
	const (
		one  = "data:\n  password: b25l\n"
		same = "stringData:\n  password: one\n"
		two  = "stringData:\n  password: two\n"

		volume    = "      volumes:\n      - name: c\n        secret: {secretName: credentials}\n"
		projected = "      volumes:\n      - name: c\n        projected: {sources: [{secret: {name: credentials}}]}\n"
		from      = "      containers:\n      - name: c\n        envFrom: [{secretRef: {name: credentials}}]\n"
		variable  = "      initContainers:\n      - name: c\n        env:\n        - name: p\n" +
			"          valueFrom: {secretKeyRef: {name: credentials, key: password}}\n"
		other = "      volumes:\n      - name: c\n        secret: {secretName: other}\n"
	)

	counted := func(count string) string {
		return "    metadata:\n      annotations:\n        capstan.dev/secret-changes: '" + count + "'\n"
	}

	for name, tt := range map[string]struct{ installed, manifest, want string }{
		"a mounted Secret":          {withSecret(one, "", volume), withSecret(two, "", volume), counted("1")},
		"a projected Secret":        {withSecret(one, "", projected), withSecret(two, "", projected), counted("1")},
		"an environment":            {withSecret(one, "", from), withSecret(two, "", from), counted("1")},
		"an environment variable":   {withSecret(one, "", variable), withSecret(two, "", variable), counted("1")},
		"again":                     {withSecret(one, counted("4"), volume), withSecret(two, "", volume), counted("5")},
		"nothing changed":           {withSecret(one, "", volume), withSecret(one, "", volume), ""},
		"nothing since":             {withSecret(one, counted("4"), volume), withSecret(one, "", volume), counted("4")},
		"the same, written as text": {withSecret(one, "", volume), withSecret(same, "", volume), ""},
		"another Secret":            {withSecret(one, "", other), withSecret(two, "", other), ""},
		"nothing installed":         {"", withSecret(two, "", volume), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			renderer := patches.Restarting{Namespace: "tiny", Installed: decoded(g, tt.installed)}

			rendered, err := renderer.Render([]byte(tt.manifest))
			g.Expect(err).NotTo(HaveOccurred())

			want := decoded(g, tt.manifest)
			if tt.want != "" {
				annotated := decoded(g, withSecret("", tt.want, "      {}\n"))[1]
				metadata, _, _ := unstructured.NestedMap(annotated.Object, "spec", "template", "metadata")
				g.Expect(unstructured.SetNestedMap(want[1].Object, metadata, "spec", "template", "metadata")).To(Succeed())
			}

			g.Expect(decoded(g, string(rendered))).To(Equal(want))
		})
	}
}

func TestRestartingReportsNoContent(t *testing.T) {
	g := NewWithT(t)
	renderer := patches.Restarting{Namespace: "tiny", Installed: decoded(g, withSecret("", "", "      {}\n"))}

	_, err := renderer.Render([]byte(withSecret("data: [hunter2]\n", "", "      {}\n")))
	g.Expect(err).To(MatchError("read Secret credentials: not a valid Secret"))
}

// Secrets that the spec adds count like those of the chart.
func TestRestartingForAdditionalSecrets(t *testing.T) {
	const (
		secret   = "apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n"
		mounting = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, namespace: tiny}\n" +
			"spec: {template: {spec: {volumes: [{name: c, secret: {secretName: credentials}}]}}}\n"
	)

	g := NewWithT(t)
	installed := decoded(g, "---\n"+secret+"stringData: {password: one}\n"+mounting)

	for password, want := range map[string]map[string]string{"one": nil, "two": {v1alpha2.SecretChangesAnnotation: "1"}} {
		in := additional(secret+"stringData: {password: ${PASSWORD}}\n", map[string]string{"PASSWORD": password})
		in.Namespace, in.Label = "tiny", "infrastructure-tiny"
		inner, err := patches.New(in)
		g.Expect(err).NotTo(HaveOccurred())

		renderer := patches.Restarting{Renderer: inner, Namespace: "tiny", Installed: installed}
		rendered, err := renderer.Render([]byte(mounting))
		g.Expect(err).NotTo(HaveOccurred())

		deployment := decoded(g, string(rendered))[0]
		got, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "annotations")
		g.Expect(got).To(Equal(want), password)
	}
}
