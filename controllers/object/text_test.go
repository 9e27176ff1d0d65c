package object

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKeyString(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	clusterRole := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}

	for want, key := range map[string]Key{
		"Deployment ns/manager": {deployment, "ns", "manager"},
		"ClusterRole reader":    {clusterRole, "", "reader"},
	} {
		NewWithT(t).Expect(key.String()).To(Equal(want))
	}
}

func TestKeyOf(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"namespace": "ns", "name": "manager"},
	}}

	NewWithT(t).Expect(KeyOf(o)).To(Equal(Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace:        "ns",
		Name:             "manager",
	}))
}

func TestOneLine(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":                   {"all fits", 20, "all fits"},
		"exactly the limit":       {"1234", 4, "1234"},
		"several lines":           {" one\n\t two  three\n", 20, "one two three"},
		"too long":                {"1234567", 4, "1234 …"},
		"cut inside of character": {"aéé", 2, "a …"},
		"empty":                   {"", 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(OneLine(tt.text, tt.limit)).To(Equal(tt.want))
		})
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"ConfigMap a/b, “quoted” … é":      "ConfigMap a/b, “quoted” … é",
		"a\r\n{\"level\":\"info\"}\tb":     `a  {"level":"info"} b`,
		"\x1b[31mred\x1b[0m\x07\u009b2J":   " [31mred [0m  2J",
		"user\u202e\u2066gnp.exe\u2028end": "usergnp.exe end",
	} {
		NewWithT(t).Expect(Printable(text)).To(Equal(want))
	}
}

func TestList(t *testing.T) {
	for want, tt := range map[string]struct {
		items []string
		limit int
	}{
		"":                {nil, 2},
		"a":               {[]string{"a"}, 2},
		"a, b":            {[]string{"a", "b"}, 2},
		"a, b and 1 more": {[]string{"a", "b", "c"}, 2},
		"a and 2 more":    {[]string{"a", "b", "c"}, 1},
	} {
		NewWithT(t).Expect(List(tt.items, tt.limit)).To(Equal(want))
	}
}

func TestAndMore(t *testing.T) {
	g := NewWithT(t)
	g.Expect(AndMore(-1)).To(BeEmpty())
	g.Expect(AndMore(0)).To(BeEmpty())
	g.Expect(AndMore(2)).To(Equal(" (and 2 more)"))
}
