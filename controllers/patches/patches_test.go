package patches_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/patches"
)

// manifest is a manifest as Helm renders it, with comments, in a style that no encoder writes.
const manifest = `---
# Source: infrastructure-tiny/templates/serviceaccount-manager.yaml
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: tiny, labels: {app: tiny}}   # as it was
---
# Source: infrastructure-tiny/templates/clusterrole-manager.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
---
# Source: infrastructure-tiny/templates/deployment-manager.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: tiny
    tier: control
  name: manager
  namespace: tiny
spec:
  replicas: 1
  template:
    spec:
      containers:
      - args: [--leader-elect]
        image: registry.example.com/tiny:v1.0.0
        name: manager
        env:
        - {name: A, value: "yes"}
        - {name: B, value: "0755"}
      - image: registry.example.com/proxy:v1.0.0
        name: proxy
      volumes:
      - {name: cert, secret: {secretName: cert}}
---
# Source: infrastructure-tiny/templates/tiny-settings.yaml
apiVersion: tiny.example.com/v1
kind: Settings
metadata:
  name: settings
  namespace: tiny
spec:
  big: 2147483648
  list:
  - name: a
    value: 1
  nested: {keep: true, drop: true}
`

// render applies the patches to the manifest and returns its objects by kind and name.
func render(t *testing.T, in patches.Input) (map[string]map[string]any, error) {
	t.Helper()

	in.Namespace, in.Label = "tiny", "infrastructure-tiny"

	r, err := patches.New(in)
	if err != nil {
		return nil, err
	}

	out, err := r.Render([]byte(manifest))
	if err != nil {
		return nil, err
	}

	again, err := r.Render([]byte(manifest))
	if err != nil || string(again) != string(out) {
		t.Errorf("rendering again gives another result: %v", err)
	}

	return objects(t, string(out)), nil
}

func objects(t *testing.T, manifest string) map[string]map[string]any {
	t.Helper()

	found := map[string]map[string]any{}

	for text := range strings.SplitSeq(manifest, "---\n") {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}

		var object map[string]any
		if err := utiljson.Unmarshal(data, &object); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}

		if object != nil {
			found[object["kind"].(string)+" "+object["metadata"].(map[string]any)["name"].(string)] = object
		}
	}

	return found
}

// expected returns the manifest's objects with one of them replaced by another, in YAML, or removed
// if that is empty.
func expected(t *testing.T, key, object string) map[string]map[string]any {
	t.Helper()
	all := objects(t, manifest)
	delete(all, key)

	for k, o := range objects(t, object) {
		all[k] = o
	}

	return all
}

// The beginnings of the manifest's objects, up to their specs.
const (
	deployment = `{apiVersion: apps/v1, kind: Deployment,
		metadata: {name: manager, namespace: tiny, labels: {app: tiny, tier: control}}, spec: `
	settings = `{apiVersion: tiny.example.com/v1, kind: Settings,
		metadata: {name: settings, namespace: tiny}, spec: `
)

// The parts of the Deployment's pod.
const (
	managerContainer = `{name: manager, image: "registry.example.com/tiny:v1.0.0", args: [--leader-elect],
		env: [{name: A, value: "yes"}, {name: B, value: "0755"}]}`
	proxyContainer = `{name: proxy, image: "registry.example.com/proxy:v1.0.0"}`
	certVolume     = `{name: cert, secret: {secretName: cert}}`
)

// spec returns the rest of the Deployment with other containers.
func spec(replicas string, containers ...string) string {
	return "{replicas: " + replicas + ", template: {spec: {containers: [" + strings.Join(containers, ", ") +
		"], volumes: [" + certVolume + "]}}}}"
}

func TestPatches(t *testing.T) {
	for name, c := range map[string]struct {
		patch  string
		target string // the kind of the target; empty for none
		key    string // of the only object that changes
		want   string
	}{
		"strategic: containers are merged by name, and those of the patch come first": {
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
		"strategic: env is merged by name and converted to strings, args are replaced": {
			patch: `spec: {template: {spec: {containers: [
				{name: manager, args: [--v=5], env: [{name: B, value: 1}]}]}}}`,
			target: "Deployment",
			key:    "Deployment manager",
			want: deployment + spec("1", `{name: manager, image: "registry.example.com/tiny:v1.0.0", args: [--v=5],
				env: [{name: B, value: "1"}, {name: A, value: "yes"}]}`, proxyContainer),
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

			in := patches.Input{Patches: []v1alpha2.Patch{{Patch: c.patch}}}
			if c.target != "" {
				in.Patches[0].Target = &v1alpha2.PatchTarget{Kind: c.target}
			}

			got, err := render(t, in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(BeComparableTo(expected(t, c.key, c.want)))
		})
	}
}

func TestTargets(t *testing.T) {
	for name, c := range map[string]struct {
		target v1alpha2.PatchTarget
		want   []string
	}{
		"any object": {
			v1alpha2.PatchTarget{},
			[]string{"ServiceAccount manager", "ClusterRole manager", "Deployment manager", "Settings settings"},
		},
		"group": {v1alpha2.PatchTarget{Group: "apps"}, []string{"Deployment manager"}},
		"group and version": {
			v1alpha2.PatchTarget{Group: "tiny.example.com", Version: "v1"},
			[]string{"Settings settings"},
		},
		"version": {
			v1alpha2.PatchTarget{Version: "v1", Kind: "ServiceAccount"},
			[]string{"ServiceAccount manager"},
		},
		"name": {
			v1alpha2.PatchTarget{Name: "manager"},
			[]string{"ServiceAccount manager", "ClusterRole manager", "Deployment manager"},
		},
		"name is not a pattern": {v1alpha2.PatchTarget{Name: "manag.*"}, nil},
		"namespace": {
			v1alpha2.PatchTarget{Namespace: "tiny"},
			[]string{"ServiceAccount manager", "Deployment manager", "Settings settings"},
		},
		"labels": {
			v1alpha2.PatchTarget{LabelSelector: "app=tiny"},
			[]string{"ServiceAccount manager", "Deployment manager"},
		},
		"labels, by expression": {
			v1alpha2.PatchTarget{LabelSelector: "app in (tiny), tier!=control"},
			[]string{"ServiceAccount manager"},
		},
		"all must match":          {v1alpha2.PatchTarget{Kind: "Deployment", LabelSelector: "tier=none"}, nil},
		"another version of it":   {v1alpha2.PatchTarget{Group: "apps", Version: "v1beta1"}, nil},
		"kind in the wrong group": {v1alpha2.PatchTarget{Group: "extensions", Kind: "Deployment"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := render(
				t,
				patches.Input{Patches: []v1alpha2.Patch{{Patch: "metadata: {annotations: {hit: here}}", Target: &c.target}}},
			)
			if c.want == nil {
				g.Expect(err).To(MatchError(ContainSubstring("spec.patches[0]: it matches no object")))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			var hit []string

			for key, object := range got {
				if object["metadata"].(map[string]any)["annotations"] != nil {
					hit = append(hit, key)
				}
			}

			g.Expect(hit).To(ConsistOf(c.want))
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

			got, err := render(t, patches.Input{ManifestPatches: []string{c.patch}})
			if c.want == nil {
				g.Expect(err).To(MatchError(ContainSubstring("spec.manifestPatches[0]: it matches no object")))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			var hit []string

			for key, object := range got {
				if object["metadata"].(map[string]any)["annotations"] != nil {
					hit = append(hit, key)
				}
			}

			g.Expect(hit).To(ConsistOf(c.want))
		})
	}

	t.Run("are merged by RFC 7396 for any kind", func(t *testing.T) {
		g := NewWithT(t)
		got, err := render(
			t,
			patches.Input{
				ManifestPatches: []string{`{kind: Deployment, spec: {template: {spec: {containers: [{name: only}]}}}}`},
			},
		)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeComparableTo(expected(t, "Deployment manager", deployment+spec("1", "{name: only}"))))
	})
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
		r, err := patches.New(patches.Input{ManifestPatches: []string{`{"kind":"X","spec":` + c[1] + `}`}})
		g.Expect(err).NotTo(HaveOccurred())
		out, err := r.Render([]byte(`{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":` + c[0] + `}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(out)).To(MatchYAML(`{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"spec":`+c[2]+`}`), c[1])
	}
}

func TestOrder(t *testing.T) {
	g := NewWithT(t)
	got, err := render(t, patches.Input{Patches: []v1alpha2.Patch{
		{Patch: "{kind: Deployment, metadata: {labels: {step: one}}}"},
		{Patch: "{metadata: {labels: {step: two}}}", Target: &v1alpha2.PatchTarget{LabelSelector: "step=one"}},
		{
			Patch:  `[{op: test, path: /metadata/labels/step, value: two}, {op: remove, path: /metadata/labels/step}]`,
			Target: &v1alpha2.PatchTarget{LabelSelector: "step"},
		},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeComparableTo(objects(t, manifest)))
}

func TestUnmatchedObjects(t *testing.T) {
	g := NewWithT(t)
	r, err := patches.New(
		patches.Input{Patches: []v1alpha2.Patch{{Patch: "kind: ClusterRole\nmetadata: {annotations: {a: b}}"}}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	out, err := r.Render([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())

	start := strings.Index(manifest, "---\n# Source: infrastructure-tiny/templates/clusterrole")
	end := strings.Index(manifest, "---\n# Source: infrastructure-tiny/templates/deployment")
	g.Expect(string(out)).To(Equal(manifest[:start] + `---
# Source: infrastructure-tiny/templates/clusterrole-manager.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
  annotations:
    a: b
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
` + manifest[end:]))
}

func TestRefusedPatches(t *testing.T) {
	onDeployment := &v1alpha2.PatchTarget{Kind: "Deployment"}
	onSettings := &v1alpha2.PatchTarget{Kind: "Settings"}

	for name, c := range map[string]struct {
		patch  string
		target *v1alpha2.PatchTarget
		parts  []string
	}{
		"not YAML": {
			patch: "a: [b",
			parts: []string{"spec.patches[0]: not YAML"},
		},
		"a word": {
			patch: "word",
			parts: []string{"spec.patches[0]: neither a list of operations", "nor a map of fields"},
		},
		"only a comment": {
			patch: "# nothing",
			parts: []string{"spec.patches[0]: neither"},
		},
		"two documents": {
			patch: "---\na: b\n---\nc: d\n",
			parts: []string{"spec.patches[0]: several documents"},
		},
		"an empty patch": {
			parts: []string{"spec.patches[0]: neither"},
		},
		"an unknown operation": {
			patch: "[{op: remove, path: /a}, {op: set, path: /b}]",
			parts: []string{"operation 2: op must be one of add, copy"},
		},
		"an operation that is not a map": {
			patch: "[remove]",
			parts: []string{"operation 1: op must be one of add, copy"},
		},
		"no path": {
			patch: "[{op: remove}]",
			parts: []string{"operation 1: path must begin with /"},
		},
		"no value": {
			patch: "[{op: add, path: /a}]",
			parts: []string{"operation 1: add needs a value"},
		},
		"no source": {
			patch: "[{op: move, path: /a}]",
			parts: []string{"operation 1: move needs a from"},
		},
		"labels that are a list": {
			patch:  "metadata: {labels: [a]}",
			target: onSettings,
			parts:  []string{"cannot be applied to Settings tiny/settings: the result is not an object"},
		},
		"an invalid label selector": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{LabelSelector: "a==,"},
			parts:  []string{"spec.patches[0].target.labelSelector"},
		},
		"a path that does not exist": {
			patch:  "[{op: remove, path: /spec/nope}]",
			target: onDeployment,
			parts:  []string{"spec.patches[0]: cannot be applied to Deployment tiny/manager", "nope"},
		},
		"the name is removed": {
			patch:  "[{op: remove, path: /metadata/name}]",
			target: onDeployment,
			parts:  []string{"spec.patches[0]: cannot be applied to Deployment tiny/", "the result is not an object"},
		},
		"a map instead of a list": {
			patch:  "spec: {template: {spec: {containers: {name: manager}}}}",
			target: onDeployment,
			parts:  []string{"spec.patches[0]: cannot be applied to Deployment tiny/manager"},
		},
		"no such object": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{Kind: "Deployment", Name: "nope"},
			parts: []string{
				"it matches no object; its target is kind Deployment, name nope; " +
					"objects of that kind: Deployment tiny/manager",
			},
		},
		"no such kind": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{Kind: "Nope"},
			parts:  []string{"its target is kind Nope", "objects of that kind: none"},
		},
		"a CRD": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{Kind: "CustomResourceDefinition"},
			parts:  []string{"CustomResourceDefinitions cannot be patched"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, patches.Input{Patches: []v1alpha2.Patch{{Patch: c.patch, Target: c.target}}}, c.parts...)
		})
	}

	t.Run("the second patch", func(t *testing.T) {
		expectRefusal(t, patches.Input{Patches: []v1alpha2.Patch{
			{Patch: "metadata: {labels: {a: b}}"},
			{Patch: "a: [b"},
		}}, "spec.patches[1]: ")
	})
}

func TestRefusedManifestPatches(t *testing.T) {
	for name, c := range map[string]struct {
		patch string
		parts []string
	}{
		"not YAML":       {"a: [b", []string{"spec.manifestPatches[0]: not YAML"}},
		"without a kind": {"metadata: {name: manager}", []string{"spec.manifestPatches[0]: kind is missing"}},
		"a list": {
			"[{op: remove, path: /a}]", []string{"spec.manifestPatches[0]: not a map", "spec.patches"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, patches.Input{ManifestPatches: []string{c.patch}}, c.parts...)
		})
	}
}

// expectRefusal checks that the input is refused with a message that has the parts.
func expectRefusal(t *testing.T, in patches.Input, parts ...string) {
	t.Helper()

	g := NewWithT(t)
	_, err := render(t, in)

	var refused *patches.Error
	g.Expect(err).To(BeAssignableToTypeOf(refused))

	for _, part := range parts {
		g.Expect(err).To(MatchError(ContainSubstring(part)))
	}
}

func TestMessagesQuoteNoContent(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {password: aHVudGVyMg==}\n"

	for _, patch := range []string{
		"data: {password: {hunter2: b}}",
		"data: [hunter2]",
		"metadata: {labels: [hunter2]}",
		"[{op: test, path: /data/password, value: hunter2}]",
		"[{op: add, path: /data/password/x, value: hunter2}]",
	} {
		g := NewWithT(t)
		r, err := patches.New(patches.Input{
			Patches: []v1alpha2.Patch{{Patch: patch, Target: &v1alpha2.PatchTarget{Kind: "Secret"}}},
		})
		g.Expect(err).NotTo(HaveOccurred())

		_, err = r.Render([]byte(secret))
		g.Expect(err).To(MatchError(ContainSubstring("cannot be applied to Secret s")), patch)
		g.Expect(err).NotTo(MatchError(ContainSubstring("aHVudGVyMg")), patch)
		g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")), patch)
	}
}

func TestNoChanges(t *testing.T) {
	g := NewWithT(t)
	r, err := patches.New(
		patches.Input{Namespace: "tiny", Label: "infrastructure-tiny", Variables: map[string]string{"A": "b"}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(BeNil())
	out, err := r.Render([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(manifest))
	g.Expect(r.Digest()).To(BeEmpty(), "as without a post-renderer")
}

func TestConcurrentRender(t *testing.T) {
	r, err := patches.New(
		patches.Input{
			Patches: []v1alpha2.Patch{
				{
					Patch:  "spec: {template: {spec: {containers: [{name: manager, image: x}]}}}",
					Target: &v1alpha2.PatchTarget{Kind: "Deployment"},
				},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := r.Render([]byte(manifest)); err != nil {
				t.Error(err)
			}
		})
	}

	wait.Wait()
}

func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		"spec: {template: {spec: {containers: [{name: manager, $patch: delete}]}}}",
		"metadata: {labels: [a], finalizers: [a], ownerReferences: [{uid: a}]}",
		"[{op: add, path: /spec/template/spec/containers/0/args/-, value: 1}]",
		"[{op: copy, from: /spec, path: /spec/x}]",
		"$patch: replace",
		"spec: &x {a: *x}",
		"spec: {template: {spec: {containers: [{name: 3}, {}, [], null], volumes: [{name: cert, $retainKeys: [x]}]}}}",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		r, err := patches.New(
			patches.Input{Patches: []v1alpha2.Patch{{Patch: text, Target: &v1alpha2.PatchTarget{Kind: "Deployment"}}}},
		)
		if err == nil {
			_, err = r.Render([]byte(manifest))
		}

		var refused *patches.Error
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("not a *patches.Error: %v", err)
		}
	})
}
