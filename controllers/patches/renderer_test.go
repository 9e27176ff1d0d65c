package patches_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/patches"
)

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

func TestSettingsForManagers(t *testing.T) {
	g := NewWithT(t)
	settings := &managers.Settings{
		Environment: []managers.Variable{{Name: "HTTPS_PROXY", Value: "http://proxy:1"}},
		CA:          "certificates",
	}
	r, err := patches.New(patches.Input{
		Namespace: "tiny",
		Label:     "infrastructure-tiny",
		Managers:  settings,
		Patches: []v1alpha2.Patch{
			{Patch: "{kind: ConfigMap, metadata: {annotations: {patched: too}}}"},
			{Patch: "[{op: remove, path: /spec/template/spec/volumes}]", Target: &v1alpha2.PatchTarget{Kind: "Deployment"}},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	out, err := r.Render([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())

	text := string(out)
	start := strings.Index(text, "---\n# Source: infrastructure-tiny/templates/deployment")
	g.Expect(start).To(BeNumerically(">", 0))
	g.Expect(text[:start]).NotTo(ContainSubstring("proxy"), "only pods are changed")
	g.Expect(text[start:]).To(And(
		ContainSubstring("value: http://proxy:1"),
		ContainSubstring("mountPath: /etc/capstan/ca"),
		ContainSubstring("---\n# Source: --manager-ca\n"),
		ContainSubstring("patched: too"),
		Not(ContainSubstring("configMap:")), // a patch has removed the volumes
	))
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
