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

// manifest is what Helm renders, comments included; the texts are not as our encoder would write
// them.
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

// render applies the patches to the manifest and gives its objects by kind and name.
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
		t.Errorf("rendered again it is something else: %v", err)
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
		if err := utiljson.Unmarshal(data, &object); err != nil { // with whole numbers as they are
			t.Fatalf("%v in\n%s", err, text)
		}

		if object != nil {
			found[object["kind"].(string)+" "+object["metadata"].(map[string]any)["name"].(string)] = object
		}
	}

	return found
}

// expected is the manifest's objects with one of them, in YAML, instead; an empty one is removed.
func expected(t *testing.T, key, object string) map[string]map[string]any {
	t.Helper()
	all := objects(t, manifest)
	delete(all, key)

	for k, o := range objects(t, object) {
		all[k] = o
	}

	return all
}

// deployment is the manifest's Deployment with another spec.
const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: tiny, labels: {app: tiny, tier: control}}, spec: "

const settings = "{apiVersion: tiny.example.com/v1, kind: Settings, metadata: {name: settings, namespace: tiny}, spec: "

const (
	managerContainer = `{name: manager, image: "registry.example.com/tiny:v1.0.0", args: [--leader-elect], env: [{name: A, value: "yes"}, {name: B, value: "0755"}]}`
	proxyContainer   = `{name: proxy, image: "registry.example.com/proxy:v1.0.0"}`
	certVolume       = `{name: cert, secret: {secretName: cert}}`
)

// spec is the Deployment's, from its containers.
func spec(containers string) string {
	return "{replicas: 1, template: {spec: {containers: [" + containers + "], volumes: [" + certVolume + "]}}}}"
}

func TestPatches(t *testing.T) {
	target := func(kind string) *v1alpha2.PatchTarget { return &v1alpha2.PatchTarget{Kind: kind} }
	for name, c := range map[string]struct {
		patch  string
		target *v1alpha2.PatchTarget
		key    string // of the one object that changes
		want   string
	}{
		"strategic: a container is merged by name, and those of the patch come first": {
			`spec: {template: {spec: {containers: [{name: manager, image: "other:v2"}, {name: extra, image: "extra:v1"}]}}}`, target("Deployment"),
			"Deployment manager", deployment + spec(strings.Replace(managerContainer, "registry.example.com/tiny:v1.0.0", "other:v2", 1)+`, {name: extra, image: "extra:v1"}, `+proxyContainer),
		},
		"strategic: env is merged by name and made text, args are replaced": {
			`spec: {template: {spec: {containers: [{name: manager, args: [--v=5], env: [{name: B, value: 1}]}]}}}`, target("Deployment"),
			"Deployment manager", deployment + spec(`{name: manager, image: "registry.example.com/tiny:v1.0.0", args: [--v=5], env: [{name: B, value: "1"}, {name: A, value: "yes"}]}, `+proxyContainer),
		},
		"strategic: $patch: delete removes an item": {
			`spec: {template: {spec: {containers: [{name: proxy, $patch: delete}]}}}`, target("Deployment"),
			"Deployment manager", deployment + spec(managerContainer),
		},
		"strategic: $patch: delete removes the object": {
			`$patch: delete`, target("Deployment"), "Deployment manager", "",
		},
		"strategic: null removes a field, an empty map sets one": {
			`spec: {replicas: null, template: {spec: {volumes: null, nodeSelector: {}}}}`, target("Deployment"),
			"Deployment manager", deployment + "{template: {spec: {nodeSelector: {}, containers: [" + managerContainer + ", " + proxyContainer + "]}}}}",
		},
		"strategic: null removes a field of the object itself": {
			`rules: null`, target("ClusterRole"), "ClusterRole manager", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: manager}}",
		},
		"a kind that Kubernetes does not know is merged by RFC 7396: lists are replaced": {
			`spec: {list: [{name: b}], nested: {drop: null, new: {deep: 1000000, gone: null}}}`, target("Settings"),
			"Settings settings", settings + "{big: 2147483648, list: [{name: b}], nested: {keep: true, new: {deep: 1000000}}}}",
		},
		"without a target, the patch itself says which object it is for": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, annotations: {a: b}}", nil,
			"Deployment manager", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: tiny, labels: {app: tiny, tier: control}, annotations: {a: b}}, spec: " + spec(managerContainer+", "+proxyContainer),
		},
		"with a target, it does not": {
			"apiVersion: v1\nkind: Any\nmetadata: {name: not-used, namespace: not-used}\nspec: {replicas: 0}", target("Deployment"),
			"Deployment manager", deployment + strings.Replace(spec(managerContainer+", "+proxyContainer), "replicas: 1", "replicas: 0", 1),
		},
		"JSON patch in YAML": {
			"- {op: replace, path: /spec/replicas, value: 3}\n- op: add\n  path: /spec/template/spec/containers/0/args/-\n  value: --v=5\n- {op: remove, path: /spec/template/spec/containers/1}", target("Deployment"),
			"Deployment manager", deployment + strings.Replace(spec(strings.Replace(managerContainer, "--leader-elect", "--leader-elect, --v=5", 1)), "replicas: 1", "replicas: 3", 1),
		},
		"JSON patch in JSON": {
			`[{"op": "test", "path": "/spec/big", "value": 2147483648}, {"op": "move", "from": "/spec/nested/drop", "path": "/spec/nested/moved"}, {"op": "copy", "from": "/spec/list/0", "path": "/spec/list/-"}]`, target("Settings"),
			"Settings settings", settings + "{big: 2147483648, list: [{name: a, value: 1}, {name: a, value: 1}], nested: {keep: true, moved: true}}}",
		},
		"JSON patch that renames": {
			`[{op: replace, path: /metadata/name, value: other}]`, target("Settings"),
			"Settings settings", strings.Replace(settings, "name: settings", "name: other", 1) + "{big: 2147483648, list: [{name: a, value: 1}], nested: {keep: true, drop: true}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := render(t, patches.Input{Patches: []v1alpha2.Patch{{Patch: c.patch, Target: c.target}}})
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
		"nothing said: all":       {v1alpha2.PatchTarget{}, []string{"ServiceAccount manager", "ClusterRole manager", "Deployment manager", "Settings settings"}},
		"group":                   {v1alpha2.PatchTarget{Group: "apps"}, []string{"Deployment manager"}},
		"group and version":       {v1alpha2.PatchTarget{Group: "tiny.example.com", Version: "v1"}, []string{"Settings settings"}},
		"version":                 {v1alpha2.PatchTarget{Version: "v1", Kind: "ServiceAccount"}, []string{"ServiceAccount manager"}},
		"name":                    {v1alpha2.PatchTarget{Name: "manager"}, []string{"ServiceAccount manager", "ClusterRole manager", "Deployment manager"}},
		"name is no pattern":      {v1alpha2.PatchTarget{Name: "manag.*"}, nil},
		"namespace":               {v1alpha2.PatchTarget{Namespace: "tiny"}, []string{"ServiceAccount manager", "Deployment manager", "Settings settings"}},
		"labels":                  {v1alpha2.PatchTarget{LabelSelector: "app=tiny"}, []string{"ServiceAccount manager", "Deployment manager"}},
		"labels, by expression":   {v1alpha2.PatchTarget{LabelSelector: "app in (tiny), tier!=control"}, []string{"ServiceAccount manager"}},
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
		want  []string // kind and name of what it changes; none is an error
	}{
		"kind alone":                {"kind: Settings\nmetadata: {annotations: {hit: here}}", []string{"Settings settings"}},
		"kind and apiVersion":       {"apiVersion: tiny.example.com/v1\nkind: Settings\nmetadata: {annotations: {hit: here}}", []string{"Settings settings"}},
		"a wrong apiVersion":        {"apiVersion: tiny.example.com/v2\nkind: Settings\nmetadata: {annotations: {hit: here}}", nil},
		"a name":                    {"kind: Deployment\nmetadata: {name: manager, annotations: {hit: here}}", []string{"Deployment manager"}},
		"a wrong name":              {"kind: Deployment\nmetadata: {name: other, annotations: {hit: here}}", nil},
		"a namespace":               {"kind: ServiceAccount\nmetadata: {namespace: tiny, annotations: {hit: here}}", []string{"ServiceAccount manager"}},
		"a wrong namespace":         {"kind: ServiceAccount\nmetadata: {namespace: other, annotations: {hit: here}}", nil},
		"a namespace where is none": {"kind: ClusterRole\nmetadata: {namespace: tiny, annotations: {hit: here}}", nil},
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

	t.Run("are merged by RFC 7396 whatever the kind", func(t *testing.T) {
		g := NewWithT(t)
		got, err := render(
			t,
			patches.Input{
				ManifestPatches: []string{`{kind: Deployment, spec: {template: {spec: {containers: [{name: only}]}}}}`},
			},
		)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeComparableTo(expected(t, "Deployment manager", deployment+spec("{name: only}"))))
	})
}

// TestMerge has the examples of RFC 7396, appendix A, of objects.
func TestMerge(t *testing.T) {
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

func TestOnlyWhatIsTouchedIsWrittenAnew(t *testing.T) {
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
	target := &v1alpha2.PatchTarget{Kind: "Deployment"}
	for name, c := range map[string]struct {
		in    patches.Input
		parts []string
	}{
		"not YAML":                        {patches.Input{Patches: []v1alpha2.Patch{{Patch: "a: [b"}}}, []string{"spec.patches[0]: not YAML"}},
		"a word":                          {patches.Input{Patches: []v1alpha2.Patch{{Patch: "word"}}}, []string{"spec.patches[0]: neither a list of operations", "nor a map of fields"}},
		"nothing":                         {patches.Input{Patches: []v1alpha2.Patch{{Patch: "# nothing"}}}, []string{"spec.patches[0]: neither"}},
		"two documents":                   {patches.Input{Patches: []v1alpha2.Patch{{Patch: "---\na: b\n---\nc: d\n"}}}, []string{"spec.patches[0]: several documents"}},
		"an empty patch":                  {patches.Input{Patches: []v1alpha2.Patch{{}}}, []string{"spec.patches[0]: neither"}},
		"an unknown operation":            {patches.Input{Patches: []v1alpha2.Patch{{Patch: "[{op: remove, path: /a}, {op: set, path: /b}]"}}}, []string{"operation 2: op must be one of add, copy"}},
		"no path":                         {patches.Input{Patches: []v1alpha2.Patch{{Patch: "[{op: remove}]"}}}, []string{"operation 1: path must begin with /"}},
		"no value":                        {patches.Input{Patches: []v1alpha2.Patch{{Patch: "[{op: add, path: /a}]"}}}, []string{"operation 1: add needs a value"}},
		"no source":                       {patches.Input{Patches: []v1alpha2.Patch{{Patch: "[{op: move, path: /a}]"}}}, []string{"operation 1: move needs a from"}},
		"labels that are none":            {patches.Input{Patches: []v1alpha2.Patch{{Patch: "metadata: {labels: [a]}", Target: &v1alpha2.PatchTarget{Kind: "Settings"}}}}, []string{"cannot be applied to Settings tiny/settings: the result is no object any more"}},
		"a selector that cannot be read":  {patches.Input{Patches: []v1alpha2.Patch{{Patch: "a: b", Target: &v1alpha2.PatchTarget{LabelSelector: "a==,"}}}}, []string{"spec.patches[0].target.labelSelector"}},
		"a path that is not there":        {patches.Input{Patches: []v1alpha2.Patch{{Patch: "metadata: {labels: {a: b}}"}, {Patch: "[{op: remove, path: /spec/nope}]", Target: target}}}, []string{"spec.patches[1]: cannot be applied to Deployment tiny/manager", "nope"}},
		"an object without name is left":  {patches.Input{Patches: []v1alpha2.Patch{{Patch: "[{op: remove, path: /metadata/name}]", Target: target}}}, []string{"spec.patches[0]: cannot be applied to Deployment tiny/", "the result is no object any more"}},
		"a map where a list belongs":      {patches.Input{Patches: []v1alpha2.Patch{{Patch: "spec: {template: {spec: {containers: {name: manager}}}}", Target: target}}}, []string{"spec.patches[0]: cannot be applied to Deployment tiny/manager"}},
		"no such object":                  {patches.Input{Patches: []v1alpha2.Patch{{Patch: "a: b", Target: &v1alpha2.PatchTarget{Kind: "Deployment", Name: "nope"}}}}, []string{"it is for kind Deployment, name nope", "Deployment tiny/manager"}},
		"no such kind":                    {patches.Input{Patches: []v1alpha2.Patch{{Patch: "a: b", Target: &v1alpha2.PatchTarget{Kind: "Nope"}}}}, []string{"it is for kind Nope", "there are: none"}},
		"a CRD":                           {patches.Input{Patches: []v1alpha2.Patch{{Patch: "a: b", Target: &v1alpha2.PatchTarget{Kind: "CustomResourceDefinition"}}}}, []string{"CustomResourceDefinitions cannot be patched"}},
		"a manifest patch without a kind": {patches.Input{ManifestPatches: []string{"metadata: {name: manager}"}}, []string{"spec.manifestPatches[0]: kind is missing"}},
		"a manifest patch that is a list": {patches.Input{ManifestPatches: []string{"[{op: remove, path: /a}]"}}, []string{"spec.manifestPatches[0]: not a map", "spec.patches"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := render(t, c.in)

			var wrong *patches.Error
			g.Expect(err).To(BeAssignableToTypeOf(wrong))

			for _, part := range c.parts {
				g.Expect(err).To(MatchError(ContainSubstring(part)))
			}
		})
	}
}

func TestMessagesQuoteNothing(t *testing.T) {
	g := NewWithT(t)

	for _, patch := range []string{
		"data: {password: {hunter2: b}}", "data: [hunter2]", "metadata: {labels: [hunter2]}",
		"[{op: test, path: /data/password, value: hunter2}]", "[{op: add, path: /data/password/x, value: hunter2}]",
	} {
		r, err := patches.New(
			patches.Input{Patches: []v1alpha2.Patch{{Patch: patch, Target: &v1alpha2.PatchTarget{Kind: "Secret"}}}},
		)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = r.Render([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {password: aHVudGVyMg==}\n"))
		g.Expect(err).
			To(MatchError(And(ContainSubstring("cannot be applied to Secret s"), Not(ContainSubstring("aHVudGVyMg")), Not(ContainSubstring("hunter2")))), patch)
	}
}

func TestNothingToDo(t *testing.T) {
	g := NewWithT(t)
	r, err := patches.New(
		patches.Input{Namespace: "tiny", Label: "infrastructure-tiny", Variables: map[string]string{"A": "b"}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(BeNil())
	out, err := r.Render([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(manifest))
	g.Expect(r.Digest()).To(BeEmpty(), "as if there was no post-renderer")
}

func TestRenderersAreShared(t *testing.T) {
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
		"spec: {template: {spec: {containers: [{name: manager, $patch: delete}]}}}", "metadata: {labels: [a], finalizers: [a], ownerReferences: [{uid: a}]}",
		"[{op: add, path: /spec/template/spec/containers/0/args/-, value: 1}]", "[{op: copy, from: /spec, path: /spec/x}]", "$patch: replace", "spec: &x {a: *x}",
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

		var wrong *patches.Error
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("no *patches.Error: %v", err)
		}
	})
}
