package manifest_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/manifest"
)

func TestPatches(t *testing.T) {
	for name, c := range map[string]struct {
		patch  string
		target string // the kind of the target; empty for none
		key    string // of the only object that changes
		want   string
	}{
		"strategic: containers are merged by name, and new ones come first": {
			patch: `spec: {template: {spec: {containers: [
				{name: manager, image: "other:v2"}, {name: extra, image: "extra:v1"}]}}}`,
			target: "Deployment",
			key:    "Deployment manager",
			want: deployment + spec(
				"1",
				strings.Replace(managerContainer, "registry.example.com/tiny:v1.0.0", "other:v2", 1),
				`{name: extra, image: "extra:v1"}`,
				proxyContainer,
			),
		},
		"strategic: env is merged by name, args are replaced": {
			patch: `spec: {template: {spec: {containers: [
				{name: manager, args: [--v=5], env: [{name: B, value: "1"}]}]}}}`,
			target: "Deployment",
			key:    "Deployment manager",
			want: deployment + spec("1", `{name: manager, image: "registry.example.com/tiny:v1.0.0", args: [--v=5],
				env: [{name: A, value: "yes"}, {name: B, value: "1"}]}`, proxyContainer),
		},
		"strategic: $patch: delete removes an item": {
			patch:  `spec: {template: {spec: {containers: [{name: proxy, $patch: delete}]}}}`,
			target: "Deployment",
			key:    "Deployment manager",
			want:   deployment + spec("1", managerContainer),
		},
		"strategic: $patch: delete removes the object": {
			patch:  `$patch: delete`,
			target: "Deployment",
			key:    "Deployment manager",
			want:   "",
		},
		"strategic: $patch: delete removes a custom resource": {
			patch:  `$patch: delete`,
			target: "Settings",
			key:    "Settings settings",
			want:   "",
		},
		"strategic: null removes a field, an empty map sets one": {
			patch:  `spec: {replicas: null, template: {spec: {volumes: null, nodeSelector: {}}}}`,
			target: "Deployment",
			key:    "Deployment manager",
			want: deployment + "{template: {spec: {nodeSelector: {}, containers: [" +
				managerContainer + ", " + proxyContainer + "]}}}}",
		},
		"strategic: null removes a top-level field": {
			patch:  `rules: null`,
			target: "ClusterRole",
			key:    "ClusterRole manager",
			want:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: manager}}",
		},
		"a custom resource is merged by RFC 7396, which replaces lists": {
			patch:  `spec: {list: [{name: b}], nested: {drop: null, new: {deep: 1000000, gone: null}}}`,
			target: "Settings",
			key:    "Settings settings",
			want:   settings + "{big: 2147483648, list: [{name: b}], nested: {keep: true, new: {deep: 1000000}}}}",
		},
		"without a target, the patch itself selects the object": {
			patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, annotations: {a: b}}",
			key:   "Deployment manager",
			want: strings.Replace(deployment, "metadata: {", "metadata: {annotations: {a: b}, ", 1) +
				spec("1", managerContainer, proxyContainer),
		},
		"with a target, it does not": {
			patch: "apiVersion: v1\nkind: Any\nmetadata: {name: not-used, namespace: not-used}\n" +
				"spec: {replicas: 0}",
			target: "Deployment",
			key:    "Deployment manager",
			want:   deployment + spec("0", managerContainer, proxyContainer),
		},
		"strategic: a field that its kind does not have is merged like a custom resource": {
			patch:  `spec: {newer: {list: [{a: b}]}}`,
			target: "Deployment",
			key:    "Deployment manager",
			want: strings.Replace(deployment, "spec: ", "", 1) + "spec: {newer: {list: [{a: b}]}, " +
				spec("1", managerContainer, proxyContainer)[1:],
		},
		"JSON patch in YAML": {
			patch: `
- {op: replace, path: /spec/replicas, value: 3}
- op: add
  path: /spec/template/spec/containers/0/args/-
  value: --v=5
- {op: remove, path: /spec/template/spec/containers/1}`,
			target: "Deployment",
			key:    "Deployment manager",
			want: deployment +
				spec("3", strings.Replace(managerContainer, "--leader-elect", "--leader-elect, --v=5", 1)),
		},
		"JSON patch in JSON": {
			patch: `[
				{"op": "test", "path": "/spec/big", "value": 2147483648},
				{"op": "move", "from": "/spec/nested/drop", "path": "/spec/nested/moved"},
				{"op": "copy", "from": "/spec/list/0", "path": "/spec/list/-"}
			]`,
			target: "Settings",
			key:    "Settings settings",
			want: settings + `{big: 2147483648, list: [{name: a, value: 1}, {name: a, value: 1}],
				nested: {keep: true, moved: true}}}`,
		},
		"JSON patch that renames": {
			patch:  `[{op: replace, path: /metadata/name, value: other}]`,
			target: "Settings",
			key:    "Settings settings",
			want: strings.Replace(settings, "name: settings", "name: other", 1) +
				"{big: 2147483648, list: [{name: a, value: 1}], nested: {keep: true, drop: true}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			in := manifest.Input{Patches: []v1alpha2.Patch{{Patch: c.patch}}}
			if c.target != "" {
				in.Patches[0].Target = &v1alpha2.PatchTarget{Kind: c.target}
			}

			got, err := render(t, in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeComparableTo(expected(t, c.key, c.want)))
		})
	}
}

func TestManifestPatches(t *testing.T) {
	for name, c := range map[string]struct {
		patch string
		want  []string // the changed objects; none is an error
	}{
		"kind alone": {"kind: Settings\nmetadata: {annotations: {hit: here}}", []string{"Settings settings"}},
		"kind and apiVersion": {
			"apiVersion: tiny.example.com/v1\nkind: Settings\nmetadata: {annotations: {hit: here}}",
			[]string{"Settings settings"},
		},
		"a wrong apiVersion": {
			"apiVersion: tiny.example.com/v2\nkind: Settings\nmetadata: {annotations: {hit: here}}",
			nil,
		},
		"a name": {
			"kind: Deployment\nmetadata: {name: manager, annotations: {hit: here}}",
			[]string{"Deployment manager"},
		},
		"a wrong name": {"kind: Deployment\nmetadata: {name: other, annotations: {hit: here}}", nil},
		"a namespace": {
			"kind: ServiceAccount\nmetadata: {namespace: tiny, annotations: {hit: here}}",
			[]string{"ServiceAccount manager"},
		},
		"a wrong namespace":            {"kind: ServiceAccount\nmetadata: {namespace: other, annotations: {hit: here}}", nil},
		"a namespace it does not have": {"kind: ClusterRole\nmetadata: {namespace: tiny, annotations: {hit: here}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := render(t, manifest.Input{ManifestPatches: []string{c.patch}})
			if c.want == nil {
				g.Expect(err).To(MatchError(ContainSubstring("spec.manifestPatches[0]: it matches no object")))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(hit(got)).To(ConsistOf(c.want))
		})
	}

	t.Run("are merged by RFC 7396 for any kind", func(t *testing.T) {
		g := NewWithT(t)
		got, err := render(
			t,
			manifest.Input{
				ManifestPatches: []string{`{kind: Deployment, spec: {template: {spec: {containers: [{name: only}]}}}}`},
			},
		)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeComparableTo(expected(t, "Deployment manager", deployment+spec("1", "{name: only}"))))
	})
}

// TestPatchesAreBounded: the results of all patches together are limited, before there are more.
func TestPatchesAreBounded(t *testing.T) {
	large := strings.Repeat("x", 400<<10)
	many := numbered(1900, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n---\n")
	onConfigMaps := &v1alpha2.PatchTarget{Kind: "ConfigMap"}

	for name, c := range map[string]struct {
		objects         string
		patches         []v1alpha2.Patch
		manifestPatches []string
		reason          string
	}{
		"spec.manifestPatches": {
			objects: many, manifestPatches: []string{"kind: ConfigMap\ndata: {a: " + large + "}"}, reason: "16 MiB",
		},
		"spec.patches, merged": {
			objects: many, patches: []v1alpha2.Patch{{Patch: "{data: {a: " + large + "}}", Target: onConfigMaps}},
			reason: "16 MiB",
		},
		"spec.patches, with operations": {
			objects: many, reason: "16 MiB", patches: []v1alpha2.Patch{{Target: onConfigMaps, Patch: `[{op: add, path: /data,
				value: {a: ` + large[:200<<10] + `}}, {op: copy, from: /data/a, path: /data/b}]`}},
		},
		"many values": {
			objects: many, reason: "600000 values", patches: []v1alpha2.Patch{
				{Patch: "{data: {" + numbered(40000, "a%d: b,") + "}}", Target: onConfigMaps},
			},
		},
		"many patches of one object": {
			objects: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " + large + "}}", reason: "16 MiB",
			manifestPatches: slices.Repeat([]string{"kind: ConfigMap\ndata: {b: c}"}, 256),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			used := allocated(func() {
				_, err := renderOf(t, manifest.Input{Patches: c.patches, ManifestPatches: c.manifestPatches}, c.objects)
				g.Expect(err).To(MatchError(And(
					HavePrefix("spec."), ContainSubstring("cannot be applied to ConfigMap a"), HaveSuffix(
						"the result brings the total to more than "+c.reason+"; select fewer objects, or combine patches"))))
			})
			g.Expect(used).To(BeNumerically("<", 400<<20), "bytes, a great part of them to read patches and objects")
		})
	}
}

// TestListsOfPatchesAreBounded: the time of a strategic merge grows with the square of the number of elements.
func TestListsOfPatchesAreBounded(t *testing.T) {
	patched := func(patches, containers int) error {
		patch := "{kind: Deployment, spec: {template: {spec: {containers: [" + numbered(containers, "{name: c%d},") + "]}}}}"
		_, err := render(t, manifest.Input{Patches: slices.Repeat([]v1alpha2.Patch{{Patch: patch}}, patches)})

		return err
	}

	const refused = "cannot be applied to Deployment tiny/manager: the lists of strategic merges have too many " +
		"elements; use a JSON patch"

	NewWithT(t).Expect(patched(5, 500)).To(Succeed())
	NewWithT(t).Expect(patched(1, 30000)).To(MatchError("spec.patches[0]: " + refused))
	NewWithT(t).Expect(patched(256, 500)).To(MatchError(HaveSuffix(refused)))
}

// TestMergePatch covers the examples of objects in RFC 7396, appendix A, and nulls inside of lists.
func TestMergePatch(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":[]}`, `{"a":[null,{"b":null}]}`, `{"a":[null,{"b":null}]}`},
	} {
		g := NewWithT(t)
		x := func(spec string) string {
			return `{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":` + spec + `}`
		}
		got, err := renderOf(t, manifest.Input{ManifestPatches: []string{`{"kind":"X","spec":` + c[1] + `}`}}, x(c[0]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(objects(t, x(c[2]))), c[1])
	}
}
