package audit

import (
	"fmt"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	var value any = o.Object

	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}

		value = fields[name]
	}

	return value
}

// nested returns the content of a field; nil if it has none.
func (o *object) nested(path ...string) map[string]any {
	fields, _ := o.field(path...).(map[string]any)
	return fields
}

// text returns the text of a field; empty if it is not set.
func (o *object) text(path ...string) string {
	value, _ := o.field(path...).(string)
	return value
}

// flag returns the value of a boolean field; false if it is not set.
func (o *object) flag(path ...string) bool {
	value, _ := o.field(path...).(bool)
	return value
}

func text(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}

// condition is a condition of an object.
type condition struct{ kind, status, time string }

// conditions returns the conditions that core reads.
func (o *object) conditions() []condition {
	items, _ := o.field("status", "conditions").([]any)
	found := make([]condition, 0, len(items))

	for _, item := range items {
		fields, _ := item.(map[string]any)
		found = append(found, condition{
			kind:   text(fields, "type"),
			status: text(fields, "status"),
			time:   text(fields, "lastTransitionTime"),
		})
	}

	return found
}

// condition returns the condition of a type, and whether there is one. Objects of v1beta1 may have those of v1beta2
// in another field.
func (o *object) condition(kind string) (condition, bool) {
	for _, c := range o.conditions() {
		if c.kind == kind {
			return c, true
		}
	}

	items, _ := o.field("status", "v1beta2", "conditions").([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		if text(fields, "type") == kind {
			return condition{kind, text(fields, "status"), text(fields, "lastTransitionTime")}, true
		}
	}

	return condition{}, false
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
