package audit

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// kept are the fields that rules read, besides metadata.
var kept = map[string][]string{
	"spec": {
		"bootstrap", "clusterName", "controlPlaneEndpoint", "controlPlaneRef", "infrastructureRef", "machineTemplate",
		"paused", "providerID", "template", "version",
	},
	"status": {
		"conditions", "dataSecretName", "infrastructureReady", "initialization", "initialized", "ready", "v1beta2",
	},
}

// Trim removes what no rule reads from an object, so that many objects fit into memory.
func Trim(o *unstructured.Unstructured) {
	trimmed := map[string]any{}

	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		trimmed[key] = o.Object[key]
	}

	for key, names := range kept {
		fields, ok := o.Object[key].(map[string]any)
		if !ok {
			continue
		}

		remaining := map[string]any{}

		for _, name := range names {
			if value, ok := fields[name]; ok {
				remaining[name] = value
			}
		}

		trimmed[key] = remaining
	}

	o.Object = trimmed

	// The fields of the field managers are the largest part of many objects.
	entries := o.GetManagedFields()
	for i := range entries {
		entries[i].FieldsV1 = nil
	}

	o.SetManagedFields(entries)
}

// field returns the value of a field; nil if it is not set.
func (o *object) field(path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value
}

// text returns the text of a field; empty if it is not set.
func (o *object) text(path ...string) string { return bundle.NestedString(o.Object, path...) }

// flag returns the value of a boolean field; false if it is not set.
func (o *object) flag(path ...string) bool {
	value, _ := o.field(path...).(bool)
	return value
}

// condition is a condition of an object.
type condition struct{ kind, status, time string }

// conditionsIn returns the conditions in a field.
func (o *object) conditionsIn(path ...string) []condition {
	items := bundle.NestedMaps(o.Object, path...)
	found := make([]condition, 0, len(items))

	for _, item := range items {
		found = append(found, condition{
			kind:   bundle.NestedString(item, "type"),
			status: bundle.NestedString(item, "status"),
			time:   bundle.NestedString(item, "lastTransitionTime"),
		})
	}

	return found
}

// conditions returns the conditions that core reads.
func (o *object) conditions() []condition { return o.conditionsIn("status", "conditions") }

// condition returns the condition of a type, and whether there is one. Objects of v1beta1 may have those of v1beta2
// in another field.
func (o *object) condition(kind string) (condition, bool) {
	all := slices.Concat(o.conditions(), o.conditionsIn("status", "v1beta2", "conditions"))

	i := slices.IndexFunc(all, func(c condition) bool { return c.kind == kind })
	if i < 0 {
		return condition{}, false
	}

	return all[i], true
}

// quote returns a value from the cluster for a message: printable and short.
func quote(value any) string {
	const most = 80

	text := fmt.Sprint(value)
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}

	return fmt.Sprintf("%q", text)
}

// timeText returns a time for a message.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// isTrue reports whether a condition is True.
func (c condition) isTrue() bool { return c.status == string(metav1.ConditionTrue) }
