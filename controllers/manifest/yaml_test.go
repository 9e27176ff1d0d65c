package manifest

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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

// serverFields are what the API server sets in the metadata of an object, as YAML.
const serverFields = `creationTimestamp: "2025-02-03T04:05:06Z", deletionGracePeriodSeconds: 30,
  deletionTimestamp: "2025-02-03T04:05:06Z", generation: 3, resourceVersion: "48151623", selfLink: /api/v1/a,
  uid: 2b0f7a52-77ab-4a0e-93a5-3f1b7f6a0c11,
  managedFields: [{apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}, manager: a, operation: Update}],
  ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: 9d1d4c3e-0000-4000-8000-000000000001}]`

func TestServerFields(t *testing.T) {
	for name, c := range map[string]struct{ exported, want string }{
		"of code generators": {
			"{apiVersion: v1, kind: A, metadata: {name: a, creationTimestamp: null}, " +
				"spec: {template: {metadata: {creationTimestamp: null}}}}",
			"{apiVersion: v1, kind: A, metadata: {name: a}, spec: {template: {metadata: {}}}}",
		},
		"of an object of Kubernetes": {
			"{apiVersion: v1, kind: Service, metadata: {name: a, " + serverFields + "}, status: {loadBalancer: {}}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}}",
		},
		"of another object, whose status may be content": {
			"{apiVersion: example.com/v1, kind: A, metadata: {name: a, " + serverFields + "}, status: {a: b}}",
			"{apiVersion: example.com/v1, kind: A, metadata: {name: a}, status: {a: b}}",
		},
		"of its controller": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {own: kept, ` +
				`deployment.kubernetes.io/revision: "3", deprecated.daemonset.template.generation: "2"}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {own: kept}}}`,
		},
		"and not what its publisher may want": {
			"{apiVersion: v1, kind: Service, metadata: {name: a, finalizers: [example.com/a]}, spec: {clusterIP: 10.0.0.9}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a, finalizers: [example.com/a]}, spec: {clusterIP: 10.0.0.9}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Decode(c.exported)).To(Equal([]*unstructured.Unstructured{parse(t, c.want)}))
		})
	}
}

// parse returns the object of a YAML document as it is.
func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(document), &o.Object)).To(Succeed())

	return o
}

func TestEncodeIsBounded(t *testing.T) {
	objects, err := Decode("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: " +
		strings.Repeat("x", 1<<20) + "}}")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	_, err = Encode(slices.Repeat(objects, 1900))
	NewWithT(t).Expect(err).To(MatchError("the manifest up to ConfigMap a is larger than 16 MiB"))
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
