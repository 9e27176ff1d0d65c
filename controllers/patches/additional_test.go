package patches_test

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
	"github.com/capstan-project/capstan/controllers/patches"
)

// scope knows the kinds of a cluster: whether they are namespaced.
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

func additional(manifests string, variables map[string]string) patches.Input {
	return patches.Input{
		Additional: &patches.Additional{
			ConfigMap: types.NamespacedName{Namespace: "tiny", Name: "more"},
			Manifests: manifests,
		},
		Variables: variables,
		Scope:     cluster,
	}
}

func TestAdditionalManifests(t *testing.T) {
	const labels = `labels: {cluster.x-k8s.io/provider: infrastructure-tiny, clusterctl.cluster.x-k8s.io: ""}`
	for name, c := range map[string]struct {
		manifests string
		variables map[string]string
		want      string
	}{
		"an object without a namespace gets the provider's": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n", nil,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: tiny, " + labels + "}, data: {k: v}}",
		},
		"one that names its own keeps it, and its labels": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: elsewhere, labels: {mine: yes-indeed}}\n", nil,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: elsewhere, " + strings.Replace(labels, "{", "{mine: yes-indeed, ", 1) + "}}",
		},
		"one of the cluster has none": {
			"apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: a, namespace: wrong}\n", nil,
			"{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: a, " + labels + "}}",
		},
		"one of a kind that is not served is the release's to tell of": {
			"apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a}\n", nil,
			"{apiVersion: example.com/v1, kind: Unknown, metadata: {name: a, namespace: tiny, " + labels + "}}",
		},
		"variables and their defaults are put in": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {user: ${TINY_USER}, level: ${TINY_LEVEL:=info}, dollar: $$5}\n", map[string]string{"TINY_USER": "root"},
			"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: tiny, " + labels + "}, stringData: {user: root, level: info, dollar: $5}}",
		},
		"several documents, comments and empty ones among them": {
			"# first\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n", nil,
			"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: tiny, " + labels + "}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: tiny, " + labels + "}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := render(t, additional(c.manifests, c.variables))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeComparableTo(expected(t, "", c.want)))
		})
	}
}

func TestAdditionalManifestsComeLastAndArePatched(t *testing.T) {
	g := NewWithT(t)
	in := additional("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n", nil)
	in.Namespace, in.Label = "tiny", "infrastructure-tiny"
	in.Patches = []v1alpha2.Patch{{Patch: "kind: ConfigMap\ndata: {k: patched}"}}
	r, err := patches.New(in)
	g.Expect(err).NotTo(HaveOccurred())
	out, err := r.Render([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(manifest + `---
# Source: ConfigMap tiny/more
apiVersion: v1
data:
  k: patched
kind: ConfigMap
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-tiny
    clusterctl.cluster.x-k8s.io: ""
  name: a
  namespace: tiny
`))
}

func TestRefusedAdditionalManifests(t *testing.T) {
	for name, c := range map[string]struct {
		in    patches.Input
		parts []string
	}{
		"not YAML": {additional("a: b\n---\nkind: [", nil), []string{"ConfigMap tiny/more, key manifests"}},
		"nothing":  {additional("# nothing\n", nil), []string{"ConfigMap tiny/more, key manifests"}},
		"a missing variable": {
			additional("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: ${A}, b: ${B}}", map[string]string{"A": "a"}),
			[]string{"no value for required variables: B", "the provider's Secret or spec.variables"},
		},
		"an expression that is not closed": {additional("apiVersion: v1\nkind: Secret\nmetadata: {name: \"${A\"}", nil), []string{"ConfigMap tiny/more, key manifests, line 3: expression"}},
		"an object of the provider's": {
			additional("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: manager}", nil),
			[]string{"ServiceAccount tiny/manager is there already", "spec.patches"},
		},
		"one object twice": {
			additional("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: tiny}", nil),
			[]string{"Secret tiny/a is there already"},
		},
		"a value that would begin another object": {
			additional("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  x: \"${A}\"\n", map[string]string{"A": "a\n---\nkind: Secret"}),
			[]string{"no object any more"},
		},
		"a value that breaks the YAML, which is not told": {
			additional("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: ${A}}", map[string]string{"A": "hunter2: [hunter2"}),
			[]string{"ConfigMap tiny/more, key manifests, line 1: no object any more", "quote the expressions"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := render(t, c.in)

			var wrong *patches.Error
			g.Expect(err).To(BeAssignableToTypeOf(wrong))

			for _, part := range append(c.parts, "spec.additionalManifests: ") {
				g.Expect(err).To(MatchError(ContainSubstring(part)))
			}

			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
		})
	}

	t.Run("not the resource's fault", func(t *testing.T) {
		g := NewWithT(t)
		_, err := render(t, additional("apiVersion: example.com/v1\nkind: Unreachable\nmetadata: {name: a}", nil))

		var wrong *patches.Error

		g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
		g.Expect(errors.As(err, &wrong)).To(BeFalse())
	})
	t.Run("a missing variable can be told by its type", func(t *testing.T) {
		_, err := render(t, additional("apiVersion: v1\nkind: Secret\nmetadata: {name: \"${A}\"}", nil))

		var missing *expr.MissingError
		NewWithT(t).Expect(errors.As(err, &missing)).To(BeTrue())
	})
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
		"none":                         {},
		"in the provider's namespace":  {reference: &v1alpha2.ConfigMapReference{Name: "more"}, want: "here"},
		"in another one":               {reference: &v1alpha2.ConfigMapReference{Name: "more", Namespace: "elsewhere"}, want: "there"},
		"one that is not there":        {reference: &v1alpha2.ConfigMapReference{Name: "less"}, refused: "ConfigMap tiny/less does not exist"},
		"one without the key manifest": {reference: &v1alpha2.ConfigMapReference{Name: "empty"}, refused: `ConfigMap tiny/empty has no key "manifests"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "tiny"}}
			provider.Spec.AdditionalManifests = c.reference
			got, err := patches.ReadAdditional(t.Context(), reader, provider)

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

func TestDigest(t *testing.T) {
	g := NewWithT(t)
	digest := func(change func(*patches.Input)) string {
		in := additional(
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: \"${A:=a}\"}",
			map[string]string{},
		)
		in.Namespace, in.Label = "tiny", "infrastructure-tiny"
		in.Patches = []v1alpha2.Patch{{Patch: "a: b", Target: &v1alpha2.PatchTarget{Kind: "Secret"}}}
		change(&in)
		r, err := patches.New(in)
		g.Expect(err).NotTo(HaveOccurred())

		return r.Digest()
	}
	same := digest(func(*patches.Input) {})
	g.Expect(digest(func(in *patches.Input) { in.Variables["B"] = "unused" })).To(Equal(same))
	g.Expect(digest(func(in *patches.Input) { in.Variables["A"] = "a" })).To(Equal(same))

	for name, change := range map[string]func(*patches.Input){
		"a variable":        func(in *patches.Input) { in.Variables["A"] = "b" },
		"no manifests":      func(in *patches.Input) { in.Additional = nil },
		"the namespace":     func(in *patches.Input) { in.Namespace = "other" },
		"a patch":           func(in *patches.Input) { in.Patches[0].Patch = "a: c" },
		"a target":          func(in *patches.Input) { in.Patches[0].Target.Name = "a" },
		"no target":         func(in *patches.Input) { in.Patches[0].Target = nil },
		"one more patch":    func(in *patches.Input) { in.Patches = append(in.Patches, in.Patches[0]) },
		"a manifest patch":  func(in *patches.Input) { in.ManifestPatches = []string{"kind: Secret"} },
		"the other field's": func(in *patches.Input) { in.Patches, in.ManifestPatches = nil, []string{"{kind: Secret, a: b}"} },
	} {
		g.Expect(digest(change)).NotTo(Equal(same), name)
	}
}
