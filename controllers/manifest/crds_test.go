package manifest_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/manifest"
)

// The CRDs of the provider, and the targets that select them.
var (
	machines = chart.File{Name: "crds/tinymachines.tiny.example.com.yaml", Data: []byte(crd("Machine"))}
	clusters = chart.File{Name: "crds/tinyclusters.tiny.example.com.yaml", Data: []byte(crd("Cluster"))}

	onCRDs     = &v1alpha2.PatchTarget{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	onMachines = &v1alpha2.PatchTarget{Kind: "CustomResourceDefinition", Name: "tinymachines.tiny.example.com"}
)

func crd(kind string) string {
	return strings.NewReplacer("Machine", kind, "machine", strings.ToLower(kind)).Replace(`# published by tiny
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: tinymachines.tiny.example.com
  labels: {cluster.x-k8s.io/provider: infrastructure-tiny, clusterctl.cluster.x-k8s.io: ""}
spec:
  group: tiny.example.com
  names: {kind: TinyMachine, listKind: TinyMachineList, plural: tinymachines, singular: tinymachine}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: string}}}
`)
}

// patchCRDs applies patches to both CRDs.
func patchCRDs(spec v1alpha2.ProviderSpec) (*manifest.CRDs, error) {
	return manifest.PatchCRDs([]chart.File{clusters, machines}, &spec)
}

func TestPatchedCRDs(t *testing.T) {
	const addField = `- {op: add, path: /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/zone,
		value: {type: string}}`

	hasField := HaveField("Spec.Versions", ConsistOf(HaveField("Schema.OpenAPIV3Schema.Properties",
		HaveKeyWithValue("spec", HaveField("Properties", And(HaveKey("size"), HaveKey("zone")))))))
	hasLabel := HaveField("Labels", And(
		HaveKeyWithValue("team", "a"), HaveKeyWithValue(v1alpha2.ClusterctlProviderLabel, "infrastructure-tiny")))

	for name, c := range map[string]struct {
		spec     v1alpha2.ProviderSpec
		machines any // what the CRD of machines is like
		clusters any // that of clusters; nil if it stays the same byte for byte
	}{
		"a JSON patch of one": {
			spec:     v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{{Patch: addField, Target: onMachines}}},
			machines: hasField,
		},
		"a JSON patch of all": {
			spec:     v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{{Patch: addField, Target: onCRDs}}},
			machines: hasField,
			clusters: hasField,
		},
		"a merge patch": {
			spec: v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{{
				Patch: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
					"metadata: {name: tinymachines.tiny.example.com, labels: {team: a}}",
			}}},
			machines: hasLabel,
		},
		"labels of all objects": {
			spec:     v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{{Patch: "metadata: {labels: {team: a}}"}}},
			machines: hasLabel,
			clusters: hasLabel,
		},
		"spec.manifestPatches": {
			spec: v1alpha2.ProviderSpec{
				ManifestPatches: []string{"kind: CustomResourceDefinition\nmetadata: {labels: {team: a}}"},
			},
			machines: hasLabel,
			clusters: hasLabel,
		},
		"two in a row": {
			spec: v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{
				{Patch: "metadata: {labels: {team: a}}", Target: onMachines},
				{Patch: addField, Target: &v1alpha2.PatchTarget{LabelSelector: "team=a"}},
			}},
			machines: And(hasLabel, hasField),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			patched, err := patchCRDs(c.spec)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(patched.Files).To(HaveLen(2))
			g.Expect(patched.Summary).To(MatchRegexp(`tinymachines.tiny.example.com \([0-9a-f]{16}\)$`))

			g.Expect(decodeCRD(g, patched.Files[1])).To(c.machines.(OmegaMatcher))

			if c.clusters == nil {
				g.Expect(patched.Files[0]).To(Equal(clusters))
				return
			}

			g.Expect(decodeCRD(g, patched.Files[0])).To(c.clusters.(OmegaMatcher))
			g.Expect(patched.Summary).To(MatchRegexp(`^tinyclusters.tiny.example.com \([0-9a-f]{16}\), tinymachines`))
		})
	}

	t.Run("the chart's own files are not changed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(string(machines.Data)).To(Equal(crd("Machine")))
	})
}

func decodeCRD(g Gomega, file chart.File) *apiextensionsv1.CustomResourceDefinition {
	decoded := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(file.Data, decoded)).To(Succeed(), "%s", file.Data)

	return decoded
}

func TestPatchesOfOtherObjects(t *testing.T) {
	g := NewWithT(t)

	for _, spec := range []v1alpha2.ProviderSpec{
		{},
		{Patches: []v1alpha2.Patch{{Patch: "kind: Deployment\nspec: {replicas: 2}"}}},
	} {
		patched, err := patchCRDs(spec)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(patched.Files).To(Equal([]chart.File{clusters, machines}))
		g.Expect(patched.Summary).To(BeEmpty())
	}
}

// A patch has to match an object or a CRD.
func TestUnmatchedPatches(t *testing.T) {
	for name, c := range map[string]struct {
		target *v1alpha2.PatchTarget
		reason string // empty if it matches
	}{
		"a CRD":     {target: onMachines},
		"an object": {target: &v1alpha2.PatchTarget{Kind: "Deployment"}},
		"neither":   {&v1alpha2.PatchTarget{Kind: "Nope"}, "objects of that kind: none"},
		"any kind":  {&v1alpha2.PatchTarget{Name: "nope"}, "CustomResourceDefinition tinyclusters.tiny.example.com"},
		"no such CRD": {
			&v1alpha2.PatchTarget{Kind: "CustomResourceDefinition", Name: "nope"},
			"CustomResourceDefinition tinyclusters.tiny.example.com, CustomResourceDefinition tinymachines",
		},
		"another group": {
			&v1alpha2.PatchTarget{Group: "tiny.example.com", Kind: "CustomResourceDefinition"}, "it matches no object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{
				{Patch: "metadata: {labels: {team: a}}", Target: c.target},
			}}

			crds, err := patchCRDs(spec)
			g.Expect(err).NotTo(HaveOccurred())

			_, err = render(t, manifest.Input{Patches: spec.Patches, CRDs: crds})
			if c.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(And(HavePrefix("spec.patches[0]: "), ContainSubstring(c.reason))))
		})
	}
}

// Patches never turn a CRD into another one, nor remove it, nor change what Capstan knows it by.
func TestRefusedPatchesOfCRDs(t *testing.T) {
	for name, c := range map[string]struct{ patch, reason string }{
		"the name":     {`[{op: replace, path: /metadata/name, value: other}]`, "metadata.name must not be changed"},
		"the kind":     {`[{op: replace, path: /kind, value: Secret}]`, "kind must not be changed"},
		"the API":      {`[{op: replace, path: /apiVersion, value: v1}]`, "apiVersion must not be changed"},
		"the group":    {"spec: {group: example.com}", "spec.group must not be changed"},
		"the scope":    {"spec: {scope: Cluster}", "spec.scope must not be changed"},
		"its kind":     {"spec: {names: {kind: Other}}", "spec.names.kind must not be changed"},
		"its plural":   {"spec: {names: {plural: others}}", "spec.names.plural must not be changed"},
		"no spec":      {`[{op: remove, path: /spec}]`, "spec.group must not be changed"},
		"a deletion":   {"$patch: delete", "never deleted; spec.crds.unmanaged"},
		"no labels":    {`[{op: remove, path: /metadata/labels}]`, "the label cluster.x-k8s.io/provider must not be changed"},
		"a label":      {"metadata: {labels: {cluster.x-k8s.io/provider: x}}", "the label cluster.x-k8s.io/provider must"},
		"annotations":  {"metadata: {annotations: {capstan.dev/crd-digest: x}}", "the annotation capstan.dev/crd-digest"},
		"another type": {"spec: []", "cannot be applied to CustomResourceDefinition tinymachines.tiny.example.com"},
		"no such path": {`[{op: remove, path: /spec/nope}]`, "nope"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := patchCRDs(v1alpha2.ProviderSpec{Patches: []v1alpha2.Patch{{Patch: c.patch, Target: onMachines}}})
			NewWithT(t).Expect(err).To(MatchError(And(
				HavePrefix("spec.patches[0]: cannot be applied to CustomResourceDefinition "), ContainSubstring(c.reason))))
		})
	}

	large := v1alpha2.Patch{Patch: "metadata: {annotations: {a: " + strings.Repeat("x", 400<<10) + "}}"}

	for name, c := range map[string]struct{ crds, patches int }{
		"one patch of many CRDs":   {1900, 1},
		"many patches of few CRDs": {2, 30},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			used := allocated(func() {
				_, err := manifest.PatchCRDs(slices.Repeat([]chart.File{machines}, c.crds),
					&v1alpha2.ProviderSpec{Patches: slices.Repeat([]v1alpha2.Patch{large}, c.patches)})
				g.Expect(err).To(MatchError(ContainSubstring(
					"the result brings the total to more than 16 MiB; select fewer objects, or combine patches")))
			})
			g.Expect(used).To(BeNumerically("<", 400<<20), "bytes, a great part of them for the CRDs as published")
		})
	}
}
