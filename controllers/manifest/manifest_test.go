package manifest_test

import (
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/problem"
)

func TestOrder(t *testing.T) {
	g := NewWithT(t)
	got, err := render(t, manifest.Input{Patches: []v1alpha2.Patch{
		{Patch: "{kind: Deployment, metadata: {labels: {step: one}}}"},
		{Patch: "{metadata: {labels: {step: two}}}", Target: &v1alpha2.PatchTarget{LabelSelector: "step=one"}},
		{
			Patch:  `[{op: test, path: /metadata/labels/step, value: two}, {op: remove, path: /metadata/labels/step}]`,
			Target: &v1alpha2.PatchTarget{LabelSelector: "step"},
		},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeComparableTo(objects(t, published)))
}

func TestNoChanges(t *testing.T) {
	g := NewWithT(t)
	got, err := render(t, manifest.Input{Variables: map[string]string{"A": "b"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(objects(t, published)))
}

// TestNothingBringsServerFieldsBack checks that neither additional manifests nor patches bring back what was left out
// of the manifest.
func TestNothingBringsServerFieldsBack(t *testing.T) {
	g := NewWithT(t)

	in := additional("{apiVersion: v1, kind: ConfigMap, metadata: {name: exported, uid: a, resourceVersion: \"1\", "+
		""+
		"ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: b}]}}", nil)
	in.Patches = []v1alpha2.Patch{{
		Patch: "{metadata: {uid: a, resourceVersion: \"1\", " +
			"ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: b}]}}",
		Target: &v1alpha2.PatchTarget{Kind: "Deployment"},
	}}

	got, err := render(t, in)
	g.Expect(err).NotTo(HaveOccurred())

	for _, name := range []string{"ConfigMap exported", "Deployment manager"} {
		g.Expect(got[name]).To(HaveKeyWithValue("metadata", And(
			HaveKey("name"), Not(Or(HaveKey("uid"), HaveKey("resourceVersion"), HaveKey("ownerReferences"))))), name)
	}
}

func TestConcurrentRender(t *testing.T) {
	r, err := manifest.New(manifest.Input{Patches: []v1alpha2.Patch{{
		Patch:  "spec: {template: {spec: {containers: [{name: manager, image: x}]}}}",
		Target: &v1alpha2.PatchTarget{Kind: "Deployment"},
	}, {
		Patch:  "[{op: add, path: /metadata/annotations, value: {a: b}}]",
		Target: &v1alpha2.PatchTarget{Kind: "Deployment"},
	}}})
	if err != nil {
		t.Fatal(err)
	}

	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := r.Render(decode(t, published)); err != nil {
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
		"spec: {template: {spec: {$setElementOrder/containers: [{name: proxy}], $deleteFromPrimitiveList/x: [a]}}}",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		_, err := render(t, manifest.Input{
			Patches: []v1alpha2.Patch{{Patch: text, Target: &v1alpha2.PatchTarget{Kind: "Deployment"}}},
		})

		if err != nil && !problem.Is(err, v1alpha2.ComponentsPatchErrorReason) {
			t.Errorf("not the problem of a patch: %v", err)
		}
	})
}

func TestDigest(t *testing.T) {
	g := NewWithT(t)
	digest := func(change func(*manifest.Input)) string {
		in := additional(
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: \"${A:=a}\"}",
			map[string]string{},
		)
		in.Namespace, in.Label = "tiny", "infrastructure-tiny"
		in.Patches = []v1alpha2.Patch{{Patch: "a: b", Target: &v1alpha2.PatchTarget{Kind: "Secret"}}}
		change(&in)
		r, err := manifest.New(in)
		g.Expect(err).NotTo(HaveOccurred())

		return r.Digest()
	}
	same := digest(func(*manifest.Input) {})
	g.Expect(digest(func(in *manifest.Input) { in.Variables["B"] = "unused" })).To(Equal(same))
	g.Expect(digest(func(in *manifest.Input) { in.Variables["A"] = "a" })).To(Equal(same))

	for name, change := range map[string]func(*manifest.Input){
		"a variable":     func(in *manifest.Input) { in.Variables["A"] = "b" },
		"no manifests":   func(in *manifest.Input) { in.Additional = nil },
		"the namespace":  func(in *manifest.Input) { in.Namespace = "other" },
		"a patch":        func(in *manifest.Input) { in.Patches[0].Patch = "a: c" },
		"a target":       func(in *manifest.Input) { in.Patches[0].Target.Name = "a" },
		"no target":      func(in *manifest.Input) { in.Patches[0].Target = nil },
		"one more patch": func(in *manifest.Input) { in.Patches = append(in.Patches, in.Patches[0]) },
		"paused":         func(in *manifest.Input) { in.Paused = true },
		"settings for managers": func(in *manifest.Input) {
			in.Managers = &managers.Settings{ImagePullSecrets: []string{"a"}}
		},
		"a policy": func(in *manifest.Input) {
			in.Policies = &v1alpha2.PoliciesSpec{Update: v1alpha2.UpdateOnce}
		},
		"a manifest patch": func(in *manifest.Input) { in.ManifestPatches = []string{"kind: Secret"} },
		"the other field's": func(in *manifest.Input) {
			in.Patches = nil
			in.ManifestPatches = []string{"{kind: Secret, a: b}"}
		},
	} {
		g.Expect(digest(change)).NotTo(Equal(same), name)
	}
}
