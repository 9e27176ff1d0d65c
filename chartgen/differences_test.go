package chartgen_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// clusterScoped are the objects on which clusterctl sets a namespace although they are
// cluster-scoped: it knows only sixteen cluster-scoped kinds. There are no other differences.
var clusterScoped = []string{
	"cert-manager.io/v1, Kind=ClusterIssuer /odd-cluster-issuer",
	// These kinds are newer than clusterctl's list.
	"admissionregistration.k8s.io/v1, Kind=ValidatingAdmissionPolicy /odd-policy",
	"admissionregistration.k8s.io/v1, Kind=ValidatingAdmissionPolicyBinding /odd-policy",
	"admissionregistration.k8s.io/v1beta1, Kind=MutatingAdmissionPolicy /odd-policy",
	// Only the provider's own CRD knows the scope of this kind.
	"odd.example.com/v1, Kind=Oddity /odd-cluster-scoped",
}

// TestDifferencesFromClusterctl uses the provider in testdata, which has everything that is
// unusual. What Helm renders differs from what clusterctl applies only where clusterctl is wrong.
func TestDifferencesFromClusterctl(t *testing.T) {
	b := odd(t)
	built, err := chartgen.Build(b)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, all, err := chartgen.RequiredVariables(built)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, kind := range append(slices.Sorted(maps.Keys(assignments)), "defaults") {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			variables := map[string]string{}

			for _, name := range all {
				if assign := assignments[kind]; assign != nil && name != "ODD_REPLICAS" {
					variables[name] = assign(name)
				}
			}

			want, wantErr := clusterctlObjects(t.Context(), b, variables)

			got, err := chartObjects(built, variables)
			if wantErr != nil {
				g.Expect(err).To(HaveOccurred(), "clusterctl fails with: %v", wantErr)
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			want = corrected(g, want)
			g.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))))

			for name := range want {
				g.Expect(got[name]).To(MatchJSON(want[name]), name)
			}
		})
	}
}

// corrected removes the namespace from cluster-scoped objects, and fails if one has none.
func corrected(g Gomega, objects map[string]string) map[string]string {
	right := maps.Clone(objects)

	for _, name := range clusterScoped {
		kind, object, _ := strings.Cut(name, " /")
		wrong := kind + " " + targetNamespace + "/" + object
		g.Expect(objects).To(HaveKey(wrong), "clusterctl no longer sets a namespace")

		var content map[string]any
		g.Expect(json.Unmarshal([]byte(objects[wrong]), &content)).To(Succeed())
		delete(content["metadata"].(map[string]any), "namespace")
		data, err := json.Marshal(content)
		g.Expect(err).NotTo(HaveOccurred())
		delete(right, wrong)
		right[name] = string(data)
	}

	return right
}

// odd returns a provider with everything that is unusual.
func odd(t *testing.T) *bundle.Bundle {
	t.Helper()

	components, err := os.ReadFile("testdata/odd-components.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return provider("odd", string(components))
}

// provider returns an infrastructure provider with the given components.
func provider(name, components string) *bundle.Bundle {
	return &bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: name, Label: "infrastructure-" + name},
		Version:    "v1.0.0",
		Source:     "test",
		Components: []byte(components),
		Metadata: []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
			"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"),
	}
}

func TestBuildRefusesInvalidComponents(t *testing.T) {
	for name, c := range map[string]struct{ components, message string }{
		"a list": {
			"apiVersion: v1\nkind: List\nitems: []\n",
			"components.yaml line 1: a List without metadata.name",
		},
		"a second Namespace": {
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n" +
				"apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
			"components.yaml line 5: a second Namespace, b in addition to a",
		},
		"a CRD with a required variable": {
			crdWith("${ODD}"),
			"CustomResourceDefinition a: it uses the variable ODD, which has no default; Helm does not render CRDs",
		},
		"a CRD that is not YAML": {
			strings.Replace(crdWith("a"), "type: object", "type: [object", 1),
			"not valid YAML",
		},
		"a CRD whose schema is not YAML": {
			crdWith("a") + "    schema:\n      openAPIV3Schema:\n        type: object\n        required: [a\n",
			"components.yaml line 13: not valid YAML",
		},
		"only comments": {"# nothing\n---\n", "contains no object"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := chartgen.Build(provider("odd", c.components))

			var invalid *bundle.InvalidError
			g.Expect(err).To(BeAssignableToTypeOf(invalid))
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

// TestVariablesInCRDs: CRDs contain the defaults of their variables, so a variable that only CRDs
// use is not one of the chart's values.
func TestVariablesInCRDs(t *testing.T) {
	g := NewWithT(t)
	built, err := chartgen.Build(provider("odd", crdWith("${ODD_ONE:=one} and ${ODD_BOTH:=two}")+
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {both: \"${ODD_BOTH:=two}\"}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(built.CRDs[0].Data)).To(ContainSubstring("description: one and two\n"))
	_, all, err := chartgen.RequiredVariables(built)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(ConsistOf("ODD_BOTH"))
}

func crdWith(description string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a
spec:
  description: ` + description + `
  versions:
  - name: v1
    description: {type: object}
`
}
