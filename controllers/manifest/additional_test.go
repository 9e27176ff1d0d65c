package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/problem"
)

// scope maps the kinds of a cluster to whether they are namespaced.
type scope map[string]bool

func (s scope) IsObjectNamespaced(object runtime.Object) (bool, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	if namespaced, known := s[gvk.Kind]; known {
		return namespaced, nil
	}

	if gvk.Kind == "Unreachable" {
		return false, errors.New("connection refused")
	}

	err := &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}

	return false, fmt.Errorf("failed to get restmapping: %w", err)
}

var cluster = scope{
	"ConfigMap":      true,
	"Secret":         true,
	"Settings":       true,
	"ClusterIssuer":  false,
	"Namespace":      false,
	"ServiceAccount": true,
}

func additional(manifests string, variables map[string]string) manifest.Input {
	return manifest.Input{
		Additional: &manifest.Additional{
			ConfigMap: types.NamespacedName{Namespace: "tiny", Name: "more"},
			Manifests: manifests,
		},
		Variables: variables,
		Scope:     cluster,
	}
}

func TestAdditionalManifests(t *testing.T) {
	const (
		labels  = `labels: {cluster.x-k8s.io/provider: infrastructure-tiny, clusterctl.cluster.x-k8s.io: ""}`
		secretA = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
		secretB = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
		inTiny  = "{apiVersion: v1, kind: Secret, metadata: {namespace: tiny, " + labels
	)

	for name, c := range map[string]struct {
		manifests string
		variables map[string]string
		want      string
	}{
		"an object without a namespace gets the provider's": {
			manifests: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n",
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: tiny, ` + labels + `},
				data: {k: v}}`,
		},
		"an object with a namespace keeps it, and its labels": {
			manifests: "apiVersion: v1\nkind: ConfigMap\n" +
				"metadata: {name: a, namespace: elsewhere, labels: {mine: yes-indeed}}\n",
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: elsewhere, ` +
				strings.Replace(labels, "{", "{mine: yes-indeed, ", 1) + `}}`,
		},
		"a cluster-scoped object has no namespace": {
			manifests: "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: a, namespace: wrong}\n",
			want:      `{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: a, ` + labels + `}}`,
		},
		"an object of an unknown kind is taken to be namespaced": {
			manifests: "apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a}\n",
			want: `{apiVersion: example.com/v1, kind: Unknown,
				metadata: {name: a, namespace: tiny, ` + labels + `}}`,
		},
		"variables and their defaults are substituted": {
			manifests: secretA + "stringData: {user: ${TINY_USER}, level: ${TINY_LEVEL:=info}, dollar: $$5}\n",
			variables: map[string]string{"TINY_USER": "root"},
			want:      inTiny + ", name: a}, stringData: {user: root, level: info, dollar: $5}}",
		},
		"several documents, with comments and empty ones": {
			manifests: "# first\n---\n---\n" + secretA + "---\n" + secretB,
			want:      inTiny + ", name: a}}\n---\n" + inTiny + ", name: b}}",
		},
		"only a comment, as in a template that is not filled in": {
			manifests: "# Additional manifests go here, such as ${ANY}\n---\n",
		},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := render(t, additional(c.manifests, c.variables))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeComparableTo(expected(t, "", c.want)))
		})
	}
}

func TestAdditionalManifestsArePatched(t *testing.T) {
	g := NewWithT(t)
	in := additional("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n", nil)
	in.Patches = []v1alpha2.Patch{{Patch: "kind: ConfigMap\ndata: {k: patched}"}}
	got, err := render(t, in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(HaveKeyWithValue("ConfigMap a", HaveKeyWithValue("data", HaveKeyWithValue("k", "patched"))))
}

func TestRefusedAdditionalManifests(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"

	for name, c := range map[string]struct {
		manifests string
		variables map[string]string
		parts     []string
	}{
		"not YAML": {
			manifests: "a: b\n---\nkind: [",
			parts:     []string{"ConfigMap tiny/more, key manifests"},
		},
		"too large": {
			manifests: strings.Repeat("# comment\n", 2<<20),
			parts:     []string{"ConfigMap tiny/more, key manifests: larger than 16 MiB"},
		},
		"a missing variable": {
			manifests: secret + "stringData: {a: ${A}, b: ${B}}",
			variables: map[string]string{"A": "a"},
			parts: []string{
				"no value for required variables: B", "set them in the provider's Secret or in spec.variables",
			},
		},
		"an expression that is not closed": {
			manifests: `{apiVersion: v1, kind: Secret, metadata: {name: "${A"}}`,
			parts:     []string{"ConfigMap tiny/more, key manifests, line 1: expression"},
		},
		"an object of the provider's": {
			manifests: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: manager}",
			parts:     []string{"ServiceAccount tiny/manager already exists", "spec.patches"},
		},
		"one object twice": {
			manifests: secret + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: tiny}",
			parts:     []string{"Secret tiny/a already exists"},
		},
		"a value that begins another object": {
			manifests: secret + "stringData:\n  x: \"${A}\"\n",
			variables: map[string]string{"A": "a\n---\nkind: Secret"},
			parts:     []string{"line 1: Secret a: the value of variable A changes more than the field that contains it"},
		},
		"a value that becomes another object": {
			manifests: secret + "data:\n  x: ${A}\n",
			variables: map[string]string{"A": "eA==\nkind: Role\nrules: []"},
			parts:     []string{"line 1: Secret a: the value of variable A changes more than the field that contains it"},
		},
		"a value that is no name": {
			manifests: "apiVersion: v1\nkind: Secret\nmetadata: {name: \"${A}\"}",
			variables: map[string]string{"A": ""},
			parts:     []string{"line 1: not an object once the variables are substituted; quote the expressions"},
		},
		"a value that breaks the YAML, which is not quoted": {
			manifests: secret + "stringData: {a: ${A}}",
			variables: map[string]string{"A": "hunter2: [hunter2"},
			parts: []string{
				"ConfigMap tiny/more, key manifests, line 1: Secret a: the value of variable A changes more than the field " +
					"that contains it; remove line breaks from it, or put the expression in quotes",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := render(t, additional(c.manifests, c.variables))

			g.Expect(err).To(HaveField("Reason", v1alpha2.ComponentsPatchErrorReason))
			g.Expect(err).To(MatchError(HavePrefix("spec.additionalManifests: ")))

			for _, part := range c.parts {
				g.Expect(err).To(MatchError(ContainSubstring(part)))
			}

			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
		})
	}

	t.Run("not the resource's fault", func(t *testing.T) {
		g := NewWithT(t)
		_, err := render(t, additional("apiVersion: example.com/v1\nkind: Unreachable\nmetadata: {name: a}", nil))

		g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
		g.Expect(problem.Of(err)).To(BeNil())
	})
	t.Run("a missing variable has an error type", func(t *testing.T) {
		_, err := render(t, additional("apiVersion: v1\nkind: Secret\nmetadata: {name: \"${A}\"}", nil))

		var missing *expr.MissingError
		NewWithT(t).Expect(errors.As(err, &missing)).To(BeTrue())
	})
}

// TestAdditionalManifestsAreBounded: values are refused before they are put into the places of their expressions.
func TestAdditionalManifestsAreBounded(t *testing.T) {
	secret := func(n int, format string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n" + numbered(n, format) + "---\n"
	}

	for name, c := range map[string]struct {
		manifests, value, reason string
	}{
		"a value in many places": {
			secret(1900, "  k%d: ${A}\n"), strings.Repeat("x", 900<<10), "Secret a: with the values of its variables, " +
				"it is larger than 16 MiB; shorten them",
		},
		"a replaced prefix in many places": {
			secret(1900, "  k%d: ${A/#x/y}\n"), strings.Repeat("x", 900<<10), "it is larger than 16 MiB; shorten them",
		},
		"a value in many objects": {
			strings.Repeat(secret(1, "  k%d: ${A}\n"), 1900), strings.Repeat("x", 900<<10),
			"it brings the total to more than 4 MiB; shorten them",
		},
		"lists in many objects": {
			strings.Repeat(secret(1, "  k%d: ${A}\n"), 1900), "[" + strings.Repeat("{},", 30<<10) + "]",
			"it brings the total to more than 100000 values; shorten them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			used := allocated(func() {
				_, err := render(t, additional(c.manifests, map[string]string{"A": c.value}))
				g.Expect(err).To(MatchError(HavePrefix("spec.additionalManifests: ConfigMap tiny/more, key manifests, line ")))
				g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			})
			g.Expect(used).To(BeNumerically("<", 200<<20), "bytes: a value is read alone, and in its document")
		})
	}
}

func TestReadAdditional(t *testing.T) {
	reader := fake.NewClientBuilder().WithObjects(
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "more"},
			Data:       map[string]string{"manifests": "here"},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "more"},
			Data:       map[string]string{"manifests": "there"},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "empty"},
			Data:       map[string]string{"other": "here"},
		},
	).
		Build()
	for name, c := range map[string]struct {
		reference *v1alpha2.ConfigMapReference
		want      string
		refused   string
	}{
		"none":                        {},
		"in the provider's namespace": {reference: &v1alpha2.ConfigMapReference{Name: "more"}, want: "here"},
		"in another one": {
			reference: &v1alpha2.ConfigMapReference{Name: "more", Namespace: "elsewhere"},
			want:      "there",
		},
		"one that is not there": {
			reference: &v1alpha2.ConfigMapReference{Name: "less"},
			refused:   "ConfigMap tiny/less does not exist",
		},
		"one without the key manifest": {
			reference: &v1alpha2.ConfigMapReference{Name: "empty"},
			refused:   `ConfigMap tiny/empty has no key "manifests"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "tiny"}}
			provider.Spec.AdditionalManifests = c.reference
			got, err := manifest.ReadAdditional(t.Context(), reader, provider)

			switch {
			case c.refused != "":
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
			case c.want == "":
				g.Expect(got, err).To(BeNil())
			default:
				g.Expect(got.Manifests, err).To(Equal(c.want))
			}
		})
	}
}
