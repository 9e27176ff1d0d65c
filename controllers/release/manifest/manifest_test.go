package manifest

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDecode(t *testing.T) {
	for name, tt := range map[string]struct {
		manifest string
		want     []string
	}{
		"empty": {"", nil},
		"documents": {
			"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n",
			[]string{"A a", "B b"},
		},
		"list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n" +
				"- {apiVersion: v1, kind: B, metadata: {name: b}}\n",
			[]string{"A a", "B b"},
		},
		"comments only": {"# nothing\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := Decode(tt.manifest)
			g.Expect(err).NotTo(HaveOccurred())

			var names []string
			for _, o := range objects {
				names = append(names, o.GetKind()+" "+o.GetName())
			}

			g.Expect(names).To(Equal(tt.want))
		})
	}
}

func TestDecodeRemovesCreationTimestamps(t *testing.T) {
	g := NewWithT(t)
	objects, err := Decode("apiVersion: v1\nkind: A\nmetadata: {name: a, creationTimestamp: null}\n" +
		"spec: {template: {metadata: {creationTimestamp: null}}}\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects[0].Object).To(HaveKeyWithValue("metadata", map[string]any{"name": "a"}))
	g.Expect(objects[0].Object).To(HaveKeyWithValue("spec", map[string]any{
		"template": map[string]any{"metadata": map[string]any{}},
	}))
}

func TestDecodeErrors(t *testing.T) {
	for manifest, want := range map[string]string{
		"password: hunter2\n":                      "document 1 of the manifest: no Kubernetes object",
		"apiVersion: v1\nkind: A\ndata: hunter2\n": "document 1 of the manifest: a A without metadata.name",
		"a: b: c\n": "document 1 of the manifest is not YAML",
	} {
		_, err := Decode(manifest)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(want), Not(ContainSubstring("hunter2")))))
	}
}
