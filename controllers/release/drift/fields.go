package drift

import (
	"encoding/json"
	"fmt"
	"maps"
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

// patchedFields returns the JSON pointers of the fields that a patch changes, sorted. Lists count
// as one field.
func patchedFields(patch []byte) ([]string, error) {
	var document map[string]any
	if err := json.Unmarshal(patch, &document); err != nil {
		return nil, fmt.Errorf("read the change: %w", err)
	}

	var found []string

	appendPatched(&found, "", document)
	slices.Sort(found)

	return found, nil
}

func appendPatched(found *[]string, pointer string, patch map[string]any) {
	for key, value := range patch {
		if strings.HasPrefix(key, "$") {
			continue // a directive about other keys
		}

		child := objectdiff.Child(pointer, key)

		if fields, ok := value.(map[string]any); ok && len(fields) > 0 {
			appendPatched(found, child, fields)
		} else {
			*found = append(*found, child)
		}
	}
}

// overlapping returns the pointers that equal, contain or are contained in one of the others.
func overlapping(pointers, others []string) []string {
	return slices.DeleteFunc(pointers, func(pointer string) bool {
		return !slices.ContainsFunc(others, func(other string) bool {
			return strings.HasPrefix(pointer+"/", other+"/") || strings.HasPrefix(other+"/", pointer+"/")
		})
	})
}
