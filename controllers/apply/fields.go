package apply

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// changedFields returns the JSON pointers of the fields that differ between two states of an
// object, sorted. It ignores status and bookkeeping.
func changedFields(before, after *unstructured.Unstructured) []string {
	found := objectdiff.Fields("", withoutBookkeeping(before), withoutBookkeeping(after))
	slices.Sort(found)

	return found
}

func withoutBookkeeping(o *unstructured.Unstructured) map[string]any {
	object := maps.Clone(o.Object)
	delete(object, "status")

	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(metadata, field)
		}

		object["metadata"] = metadata
	}

	return object
}

// differing returns the JSON pointers of the fields that differ between what a manifest defines and the live values of
// that. Lists count as one field.
func differing(pointer string, defined, live any) []string {
	fields, isMap := defined.(map[string]any)
	current, ok := live.(map[string]any)

	if !isMap || !ok {
		if reflect.DeepEqual(defined, live) {
			return nil
		}

		return []string{pointer}
	}

	var found []string

	for field, value := range fields {
		found = append(found, differing(objectdiff.Child(pointer, field), value, current[field])...)
	}

	return found
}

// overlapping returns the pointers that equal, contain or are contained in one of the others.
func overlapping(pointers, others []string) []string {
	return slices.DeleteFunc(pointers, func(pointer string) bool {
		return !slices.ContainsFunc(others, func(other string) bool {
			return strings.HasPrefix(pointer+"/", other+"/") || strings.HasPrefix(other+"/", pointer+"/")
		})
	})
}
