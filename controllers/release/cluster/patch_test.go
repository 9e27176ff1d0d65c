package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())

	return o
}

func patchOf(t *testing.T, target, base, live string) *Patch {
	t.Helper()

	o := parse(t, target)
	info := &resource.Info{Object: o, Mapping: &meta.RESTMapping{GroupVersionKind: o.GroupVersionKind()}}
	patch, err := NewPatch(info, parse(t, base), parse(t, live))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(o).To(Equal(parse(t, target)))

	return patch
}

// TestWebhookScope checks that the scope of rules is changed only if it differs from the API server's default.
func TestWebhookScope(t *testing.T) {
	g := NewWithT(t)

	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		configuration := func(rule string) string {
			return "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: a}\n" +
				"webhooks: [{name: w, rules: [{resources: [pods], " + rule + "}]}]\n"
		}
		none, all, namespaced := configuration(""), configuration(`scope: "*"`), configuration("scope: Namespaced")

		g.Expect(patchOf(t, none, none, all)).To(BeNil())
		g.Expect(patchOf(t, all, all, all)).To(BeNil())

		const want = `{"$setElementOrder/webhooks": [{"name": "w"}],
			"webhooks": [{"name": "w", "rules": [{"resources": ["pods"], "scope": %q}]}]}`
		g.Expect(string(patchOf(t, none, namespaced, namespaced).Data)).To(MatchJSON(fmt.Sprintf(want, "*")))
		g.Expect(string(patchOf(t, namespaced, none, all).Data)).To(MatchJSON(fmt.Sprintf(want, "Namespaced")))
	}
}

// TestAggregatedRules checks that a patch leaves rules alone that Kubernetes gathers, and changes all others.
func TestAggregatedRules(t *testing.T) {
	const (
		head       = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"
		aggregated = head + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n"
		rules      = "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
		none       = "rules: []\n"
	)

	for name, c := range map[string]struct{ target, base, live, want string }{
		"gathered":             {target: aggregated + none, base: aggregated + none, live: aggregated + rules},
		"gathered and adopted": {target: aggregated, base: aggregated, live: aggregated + rules},
		"gathered from now on": {
			target: aggregated + none, base: head + rules, live: head + rules,
			want: `{"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}`,
		},
		"removed": {target: head + none, base: head + rules, live: head + rules, want: `{"rules": []}`},
		"gathered no longer": {
			target: head + none, base: aggregated + none, live: aggregated + rules,
			want: `{"aggregationRule": null, "rules": []}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			patch := patchOf(t, c.target, c.base, c.live)

			if c.want == "" {
				g.Expect(patch).To(BeNil())
				return
			}

			g.Expect(patch).NotTo(BeNil())
			g.Expect(string(patch.Data)).To(MatchJSON(c.want))
		})
	}
}

// TestRepeatedKeys checks all lists of built-in kinds that are merged by a key, with two items that have the same key:
// a patch neither mixes them nor loses one. The API server accepts them in some, such as the ports of a Service.
func TestRepeatedKeys(t *testing.T) {
	if os.Getenv("PENDING") == "" {
		t.Skip("pending until issue 49")
	}

	cases := map[string]struct{ target, base, live []string }{
		"one is added":         {target: []string{"a", "b"}, base: []string{"a"}, live: []string{"a"}},
		"one changes":          {target: []string{"a", "c"}, base: []string{"a", "b"}, live: []string{"a", "b"}},
		"one goes":             {target: []string{"b"}, base: []string{"a", "b"}, live: []string{"a", "b"}},
		"one was taken away":   {target: []string{"a", "b"}, base: []string{"a", "b"}, live: []string{"a"}},
		"one has been changed": {target: []string{"a", "b"}, base: []string{"a", "b"}, live: []string{"a", "c"}},
	}

	for _, list := range mergedLists() {
		for name, c := range cases {
			t.Run(list.name+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				target, live := list.with(c.target), list.with(c.live)

				patch := patchOf(t, target, list.with(c.base), live)
				g.Expect(patch).NotTo(BeNil(), "a difference is seen")

				patched, err := strategicpatch.StrategicMergePatch([]byte(live), patch.Data, list.object)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(patched).To(MatchJSON(target))
			})
		}
	}
}

// mergedList is a list that is merged by a key.
type mergedList struct {
	name   string
	object runtime.Object // of a kind that has the list
	// with returns an object as JSON, whose list has these items. All have the same key, and differ in another field.
	with func(items []string) string
}

// mergedLists returns the lists of all built-in kinds that are merged by a key, but for those of statuses. A list that
// several kinds have is returned once.
func mergedLists() []mergedList {
	lists := map[string]mergedList{}

	for kind, of := range builtIn().AllKnownTypes() {
		if _, isObject := of.FieldByName("ObjectMeta"); !isObject || kind.Version == runtime.APIVersionInternal {
			continue
		}

		walk := listWalk{object: reflect.New(of).Interface().(runtime.Object), lists: lists}
		walk.into(of, func(content map[string]any) map[string]any {
			o := &unstructured.Unstructured{Object: content}
			o.SetGroupVersionKind(kind)
			o.SetName("a")

			return o.Object
		})
	}

	return slices.SortedFunc(maps.Values(lists), func(a, b mergedList) int { return strings.Compare(a.name, b.name) })
}

// listWalk collects the lists of a kind.
type listWalk struct {
	object runtime.Object
	lists  map[string]mergedList
	within []reflect.Type // some types contain themselves
}

// into collects the lists of a type, where wrap returns an object with content of this type.
func (l listWalk) into(of reflect.Type, wrap func(map[string]any) map[string]any) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}

	if of.Kind() != reflect.Struct || slices.Contains(l.within, of) {
		return
	}

	l.within = append(slices.Clone(l.within), of)

	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		set := func(content any) map[string]any { return wrap(map[string]any{name: content}) }

		switch {
		case name == "status" && len(l.within) == 1:
		case field.Anonymous && name == "":
			l.into(field.Type, wrap)
		case field.Type.Kind() == reflect.Slice:
			l.list(of.String()+"."+name, field, func(items []any) map[string]any { return set(items) })
		default:
			l.into(field.Type, func(content map[string]any) map[string]any { return set(content) })
		}
	}
}

// list adds a list if it is merged by a key, and collects those of its items.
func (l listWalk) list(name string, field reflect.StructField, wrap func([]any) map[string]any) {
	key, keyed := field.Tag.Lookup("patchMergeKey")
	item := func(content map[string]any) map[string]any {
		if keyed {
			content[key] = keyOf(field.Type.Elem(), key)
		}

		return content
	}

	if keyed {
		l.lists[name] = mergedList{name: name, object: l.object, with: func(items []string) string {
			all := make([]any, 0, len(items))
			for _, text := range items {
				all = append(all, item(map[string]any{"text": text}))
			}

			data, err := json.Marshal(wrap(all))
			utilruntime.Must(err)

			return string(data)
		}}
	}

	l.into(field.Type.Elem(), func(content map[string]any) map[string]any { return wrap([]any{item(content)}) })
}

// keyOf returns a value of an item's key.
func keyOf(item reflect.Type, key string) any {
	for i := range item.NumField() {
		name, _, _ := strings.Cut(item.Field(i).Tag.Get("json"), ",")
		if name == key && item.Field(i).Type.Kind() == reflect.Int32 {
			return 53
		}
	}

	return "same"
}
