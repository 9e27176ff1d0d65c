package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// changedFields are the JSON pointers of what differs between two states of an object, sorted;
// bookkeeping and status aside.
func changedFields(before, after *unstructured.Unstructured) []string {
	var found []string
	appendChanged(&found, "", significant(before), significant(after))
	slices.Sort(found)

	return found
}

func significant(o *unstructured.Unstructured) map[string]any {
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

func appendChanged(found *[]string, pointer string, before, after any) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			keys := maps.Clone(before)
			maps.Copy(keys, after)

			for key := range keys {
				appendChanged(found, pointer+"/"+escape.Replace(key), before[key], after[key])
			}

			return
		}
	case []any:
		if after, ok := after.([]any); ok && len(after) == len(before) {
			for i := range before {
				appendChanged(found, pointer+"/"+strconv.Itoa(i), before[i], after[i])
			}

			return
		}
	}

	if !reflect.DeepEqual(before, after) {
		*found = append(*found, pointer)
	}
}

// patchedFields are the JSON pointers of what a patch speaks of, sorted; lists are named as a
// whole.
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
		below := pointer + "/" + escape.Replace(key)
		switch fields, ok := value.(map[string]any); {
		case strings.HasPrefix(key, "$"): // a directive, which speaks of other keys
		case ok && len(fields) > 0:
			appendPatched(found, below, fields)
		default:
			*found = append(*found, below)
		}
	}
}

// touching are the pointers that are one of the others, or lie above or below one.
func touching(pointers, others []string) []string {
	return slices.DeleteFunc(pointers, func(pointer string) bool {
		return !slices.ContainsFunc(others, func(other string) bool {
			return strings.HasPrefix(pointer+"/", other+"/") || strings.HasPrefix(other+"/", pointer+"/")
		})
	})
}
