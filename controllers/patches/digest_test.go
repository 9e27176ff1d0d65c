package patches_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/patches"
)

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
		"a variable":     func(in *patches.Input) { in.Variables["A"] = "b" },
		"no manifests":   func(in *patches.Input) { in.Additional = nil },
		"the namespace":  func(in *patches.Input) { in.Namespace = "other" },
		"a patch":        func(in *patches.Input) { in.Patches[0].Patch = "a: c" },
		"a target":       func(in *patches.Input) { in.Patches[0].Target.Name = "a" },
		"no target":      func(in *patches.Input) { in.Patches[0].Target = nil },
		"one more patch": func(in *patches.Input) { in.Patches = append(in.Patches, in.Patches[0]) },
		"settings for managers": func(in *patches.Input) {
			in.Managers = &managers.Settings{ImagePullSecrets: []string{"a"}}
		},
		"a policy": func(in *patches.Input) {
			in.Policies = &v1alpha2.PoliciesSpec{Update: v1alpha2.UpdateOnce}
		},
		"a manifest patch": func(in *patches.Input) { in.ManifestPatches = []string{"kind: Secret"} },
		"the other field's": func(in *patches.Input) {
			in.Patches = nil
			in.ManifestPatches = []string{"{kind: Secret, a: b}"}
		},
	} {
		g.Expect(digest(change)).NotTo(Equal(same), name)
	}
}
