package objectdiff

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Project returns the part of a live object that a manifest defines. Values that mean the same are as in the manifest.
func Project(defined, live *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: projectMap(defined.Object, live.Object)}
}

// project returns the part of a live value that a manifest defines. Values that mean the same are as in the manifest.
func project(defined, live any) any {
	switch defined := defined.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			return projectMap(defined, live)
		}
	case []any:
		if live, ok := live.([]any); ok {
			return projectList(defined, live)
		}
	}

	if isZero(defined) && isZero(live) || isSameQuantity(defined, live) {
		return defined
	}

	return live
}

func projectMap(defined, live map[string]any) map[string]any {
	part := map[string]any{}

	for key, value := range defined {
		_, isObject := value.(map[string]any)

		switch current, exists := live[key]; {
		case exists && value != nil:
			part[key] = project(value, current)
		case isZero(value) && !isObject: // the API server leaves out what is empty, except objects such as an emptyDir
			part[key] = value
		}
	}

	return part
}

// projectList projects items with a name on those of the same name, and others on those in the same place.
func projectList(defined, live []any) []any {
	names := map[any]any{}

	for _, item := range live {
		if name := nameOf(item); name != nil {
			names[name] = item
		}
	}

	var part []any

	for i, item := range defined {
		name := nameOf(item)

		switch current, exists := names[name]; {
		case exists:
			part = append(part, project(item, current))
		case name != nil: // it is missing
		case len(defined) != len(live):
			return live
		default:
			part = append(part, project(item, live[i]))
		}
	}

	return part
}

// nameOf returns the name of an item of a list, such as a container; nil if it has none.
func nameOf(item any) any {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)

	if name == "" {
		return nil
	}

	return name
}

// isZero reports whether a value is what a field without a value has.
func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case int64:
		return value == 0
	case float64:
		return value == 0
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}

	return false
}

// isSameQuantity reports whether two values are the same quantity, such as 1000m and 1.
func isSameQuantity(a, b any) bool {
	first, err := quantity(a)
	if err != nil {
		return false
	}

	second, err := quantity(b)

	return err == nil && first.Cmp(second) == 0
}

func quantity(value any) (resource.Quantity, error) {
	switch value.(type) {
	case string, int64, float64:
		return resource.ParseQuantity(fmt.Sprint(value))
	default:
		return resource.Quantity{}, resource.ErrFormatWrong
	}
}
