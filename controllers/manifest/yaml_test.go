package manifest

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func TestEncode(t *testing.T) {
	for _, text := range []string{
		"text", "", "text\n", "text\n\n", "\n", "  text\n", "text \n", "\ttext", "---\na\n", "a\n---\nb", "a: b\n...\n",
		"# no comment", "null", "0755", "1e3", "y", "{{ a }}", "${A}", "\u0085\u2028", "a\r\nb\r\n", "|", ">\n",
	} {
		g := NewWithT(t)

		// Each is at the end of a document.
		first := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "text": text,
		}}
		second := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "B", "metadata": map[string]any{"name": "b"},
			"numbers": []any{int64(2147483648), 0.5, int64(-1), true, nil}, "texts": map[string]any{text: []any{text}},
		}}

		manifest, err := Encode([]*unstructured.Unstructured{first, second})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(Decode(manifest)).To(Equal([]*unstructured.Unstructured{first, second}), "%q as\n%s", text, manifest)
	}
}
