package helm_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// TestSort checks what is recorded of rendered files.
func TestSort(t *testing.T) {
	const (
		widget    = "kind: Widget\nmetadata: {name: w}"
		configMap = "kind: ConfigMap\nmetadata: {name: c}"
		namespace = "kind: Namespace\nmetadata: {name: n}"
	)

	hook := func(annotations string) string {
		return "kind: Job\nmetadata: {name: j, annotations: {" + annotations + "}}"
	}

	for name, c := range map[string]struct {
		files           map[string]string
		manifest, notes string
		hooks           []helm.Hook
	}{
		"kinds in the order of installation, unknown ones last": {
			files: map[string]string{"x/templates/a.yaml": widget + "\n---\n" + configMap, "x/templates/b.yaml": namespace},
			manifest: "---\n# Source: x/templates/b.yaml\n" + namespace + "\n---\n# Source: x/templates/a.yaml\n" + configMap +
				"\n---\n# Source: x/templates/a.yaml\n" + widget + "\n",
		},
		"no empty documents and files": {
			files:    map[string]string{"x/templates/a.yaml": "---\n" + configMap + "\n---\n\n", "x/templates/b.yaml": " \n"},
			manifest: "---\n# Source: x/templates/a.yaml\n" + configMap + "\n",
		},
		"notes of the chart itself": {
			files: map[string]string{"x/templates/NOTES.txt": "hello", "x/charts/y/templates/NOTES.txt": "not"},
			notes: "hello",
		},
		"hooks beside the manifest, with the default policy": {
			files: map[string]string{"x/templates/a.yaml": hook(`helm.sh/hook: "pre-install,test", helm.sh/hook-weight: "-3"`)},
			hooks: []helm.Hook{{
				Name: "j", Kind: "Job", Path: "x/templates/a.yaml", Weight: -3,
				Events:         []helm.HookEvent{helm.HookPreInstall, "test"},
				DeletePolicies: []helm.HookDeletePolicy{helm.DeleteBeforeCreation},
			}},
		},
		"the policy of a hook": {
			files: map[string]string{
				"x/templates/a.yaml": hook(`helm.sh/hook: post-delete, helm.sh/hook-delete-policy: hook-failed`),
			},
			hooks: []helm.Hook{{
				Name: "j", Kind: "Job", Path: "x/templates/a.yaml",
				Events: []helm.HookEvent{helm.HookPostDelete}, DeletePolicies: []helm.HookDeletePolicy{helm.DeleteFailed},
			}},
		},
		"no objects with unknown events": {
			files:    map[string]string{"x/templates/a.yaml": hook("helm.sh/hook: pre-instal") + "\n---\n" + configMap},
			manifest: "---\n# Source: x/templates/a.yaml\n" + configMap + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifest, hooks, notes, err := helm.Sort("x", c.files)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.ReplaceAll(manifest, "\n\n", "\n")).To(Equal(c.manifest), "Helm 4 adds empty lines")
			g.Expect(notes).To(Equal(c.notes))
			g.Expect(hooks).To(HaveLen(len(c.hooks)))

			for i, want := range c.hooks {
				got := *hooks[i]
				g.Expect(got.Manifest).To(Equal(c.files[got.Path]))

				want.Manifest, want.OutputLogPolicies = got.Manifest, got.OutputLogPolicies
				g.Expect(got).To(Equal(want))
			}
		})
	}
}
