package view

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// UnknownValue returns what is rendered instead of the value of a variable that the user may not read.
func UnknownValue(variable string) string { return "(unknown " + variable + ")" }

// unknownValue matches what UnknownValue returns.
var unknownValue = regexp.MustCompile(`\(unknown [^)]*\)`)

// CompareWithObjects compares what the operator has applied with what is planned, for users who may not read Helm's
// records. What is installed is rendered with unknown values, as is what is planned, so that neither side shows a
// value. It returns the kinds of the objects that are left out, because the user may not read them.
func (r *Reader) CompareWithObjects(
	ctx context.Context, p v1alpha2.Provider, installed, planned *release.Record, contextLines int,
) (Comparison, []string, error) {
	keys := object.KeysOfInventory(p.GetStatus().Inventory)
	for _, o := range planned.Objects {
		keys = append(keys, object.KeyOf(o))
	}

	live, left, err := r.readable(ctx, object.Union(keys, nil))
	if err != nil {
		return Comparison{}, nil, err
	}

	before := &release.Record{AppVersion: ptr.Deref(p.GetStatus().InstalledVersion, ""), Values: installed.Values}
	after := &release.Record{AppVersion: planned.AppVersion, Values: planned.Values}

	for _, o := range live {
		o = applied(o)

		was, becomes := find(installed.Objects, o), find(planned.Objects, o)
		if becomes != nil {
			hide(becomes.Object, o.Object)
		}

		if was != nil {
			hide(was.Object, o.Object)
		}

		if was != nil && becomes != nil {
			settle(was.Object, o.Object, becomes.Object)
		}

		before.Objects = append(before.Objects, o)
	}

	for _, o := range planned.Objects {
		if !slices.Contains(left, o.GetKind()) {
			after.Objects = append(after.Objects, o)
		}
	}

	c, err := CompareWithPlan(p, state.History{Release: plan.ReleaseKey(p)}, before, after, contextLines)

	return c, left, err
}

// readable reads those of the objects that exist, and returns the kinds that the user may not read, sorted.
func (r *Reader) readable(ctx context.Context, keys []object.Key) ([]*unstructured.Unstructured, []string, error) {
	var (
		found []*unstructured.Unstructured
		left  []string
	)

	for _, key := range keys {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(key.GroupVersionKind)

		err := r.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o)

		switch {
		case err == nil:
			found = append(found, o)
		case apierrors.IsForbidden(err):
			left = append(left, key.Kind)
		case !apierrors.IsNotFound(err):
			return nil, nil, err
		}
	}

	slices.Sort(left)

	return found, slices.Compact(left), nil
}

// find returns the one of the objects that another one is a state of; nil if there is none.
func find(objects []*unstructured.Unstructured, o *unstructured.Unstructured) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(other *unstructured.Unstructured) bool {
		return object.KeyOf(other).IsSame(object.KeyOf(o))
	})
	if i < 0 {
		return nil
	}

	return objects[i]
}

// applied returns the fields of an object that the operator has applied, without what belongs to the release.
func applied(live *unstructured.Unstructured) *unstructured.Unstructured {
	fields := &fieldpath.Set{}

	for _, entry := range live.GetManagedFields() {
		if entry.Manager == v1alpha2.FieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.FieldsV1 != nil && fields.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			break
		}
	}

	o := &unstructured.Unstructured{Object: map[string]any{}}
	if owned, isMap := extract(live.Object, fields).(map[string]any); isMap {
		o.Object = owned
	}

	o.SetGroupVersionKind(live.GroupVersionKind())
	o.SetNamespace(live.GetNamespace())
	o.SetName(live.GetName())
	WithoutMarks(o)

	return o
}

// extract returns the parts of a value that a set of fields has.
func extract(value any, fields *fieldpath.Set) any {
	switch value := value.(type) {
	case map[string]any:
		found := map[string]any{}

		for name, child := range value {
			path := fieldpath.PathElement{FieldName: &name}
			if below, has := fields.Children.Get(path); has {
				found[name] = extract(child, below)
			} else if fields.Members.Has(path) {
				found[name] = child
			}
		}

		return found
	case []any:
		if fields.Children.Empty() && fields.Members.Size() == 0 {
			return value
		}

		var found []any

		for _, item := range value {
			for path := range fields.Children.All() {
				if below, _ := fields.Children.Get(path); identifies(path, item) {
					found = append(found, extract(item, below))
				}
			}

			for path := range fields.Members.All() {
				if path.Value != nil && reflect.DeepEqual((*path.Value).Unstructured(), item) {
					found = append(found, item)
				}
			}
		}

		return found
	}

	return value
}

// identifies reports whether the keys of a list's element have the values of an item.
func identifies(path fieldpath.PathElement, item any) bool {
	fields, isMap := item.(map[string]any)
	if !isMap || path.Key == nil {
		return false
	}

	for _, key := range *path.Key {
		if fmt.Sprint(key.Value.Unstructured()) != fmt.Sprint(fields[key.Name]) {
			return false
		}
	}

	return true
}

// hide replaces texts of a live value by rendered ones with unknown values that they fit, and quantities that the API
// server writes in another way. It returns the value.
func hide(rendered, live any) any {
	switch rendered := rendered.(type) {
	case map[string]any:
		current, _ := live.(map[string]any)

		for name, child := range rendered {
			if value, exists := current[name]; exists {
				current[name] = hide(child, value)
			}

			if name == "requests" || name == "limits" {
				keepQuantities(child, current[name])
			}
		}
	case []any:
		current, _ := live.([]any)

		for i, item := range rendered {
			if at := counterpart(item, i, current); at >= 0 {
				current[at] = hide(item, current[at])
			}
		}
	case string:
		if fits(rendered, live) {
			return rendered
		}
	}

	return live
}

// settle adds to a live value what was rendered empty, which the API server leaves out, and removes its defaults in
// references to fields, which have one owner as a whole. A rendered text with an unknown value that the live value has
// not is unset, so it is removed from what is planned.
func settle(was, live, planned any) {
	switch was := was.(type) {
	case map[string]any:
		current, _ := live.(map[string]any)
		next, _ := planned.(map[string]any)

		if current != nil {
			settleFields(was, current, next)
		}
	case []any:
		current, _ := live.([]any)
		next, _ := planned.([]any)

		for i, item := range was {
			at, then := counterpart(item, i, current), counterpart(item, i, next)
			if at >= 0 && then >= 0 {
				settle(item, current[at], next[then])
			}
		}
	}
}

// settleFields is settle for the fields of a map.
func settleFields(was, live, planned map[string]any) {
	for name, child := range was {
		if value, exists := live[name]; exists {
			settle(child, value, planned[name])
			continue
		}

		switch child := child.(type) {
		case nil:
			live[name] = nil
		case string:
			if child == "" {
				live[name] = child
			} else if unknownValue.MatchString(child) {
				delete(planned, name)
			}
		case map[string]any:
			settle(child, map[string]any{}, planned[name])

			if rest, stays := planned[name].(map[string]any); stays && len(rest) == 0 {
				delete(planned, name)
			}
		}
	}

	for _, name := range []string{"fieldRef", "resourceFieldRef"} {
		rendered, _ := was[name].(map[string]any)
		reference, _ := live[name].(map[string]any)

		maps.DeleteFunc(reference, func(field string, _ any) bool { return rendered[field] == nil })
	}
}

// keepQuantities replaces live quantities by rendered ones that are equal.
func keepQuantities(rendered, live any) {
	quantities, _ := rendered.(map[string]any)
	current, _ := live.(map[string]any)

	for name, value := range current {
		has, err := resource.ParseQuantity(fmt.Sprint(value))
		if err != nil {
			continue
		}

		wanted, err := resource.ParseQuantity(fmt.Sprint(quantities[name]))
		if err == nil && has.Cmp(wanted) == 0 {
			current[name] = quantities[name]
		}
	}
}

// counterpart returns the index of the item of a live list that is the same as the one at an index of a rendered list:
// by its name, or its form; -1 if there is none.
func counterpart(item any, index int, live []any) int {
	same := func(other any) bool {
		if text, isText := item.(string); isText {
			return fits(text, other)
		}

		wanted, _ := item.(map[string]any)
		current, _ := other.(map[string]any)

		return wanted["name"] != nil && wanted["name"] == current["name"]
	}

	has := index < len(live)
	if has && same(live[index]) {
		return index
	}

	found := slices.IndexFunc(live, same)
	if found < 0 && has {
		return index
	}

	return found
}

// fits reports whether a rendered text with unknown values can be a live value.
func fits(rendered string, live any) bool {
	parts := unknownValue.Split(rendered, -1)
	if len(parts) == 1 || live == nil {
		return false
	}

	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}

	text, isText := live.(string)
	if !isText {
		encoded, _ := json.Marshal(live) // it comes from JSON
		text = string(encoded)
	}

	if text == "" { // the variable is unset
		return true
	}

	form, err := regexp.Compile("(?s)^" + strings.Join(parts, ".*") + "$")

	return err == nil && form.MatchString(text)
}

// WithoutMarks removes from an object what the API server maintains, and the label and annotations that every object of
// a Helm release has.
func WithoutMarks(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")

	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}

	o.SetLabels(without(o.GetLabels(), v1alpha2.ManagedByLabel))
	o.SetAnnotations(without(o.GetAnnotations(),
		v1alpha2.HelmReleaseNameAnnotation, v1alpha2.HelmReleaseNamespaceAnnotation))
}

// without returns a map without keys; nil if nothing is left.
func without(m map[string]string, keys ...string) map[string]string {
	for _, key := range keys {
		delete(m, key)
	}

	if len(m) == 0 {
		return nil
	}

	return m
}
