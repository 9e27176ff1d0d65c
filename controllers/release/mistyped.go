package release

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/typed"
	"github.com/capstan-project/capstan/controllers/object"
)

// checkMistyped returns an error that names the objects and fields whose values have the wrong type. It knows the
// fields of the kinds of Kubernetes, and the metadata of all others. defaults and values are what the objects
// were rendered from; those that are likely causes are named. The text of the error contains no values.
func checkMistyped(objects []*unstructured.Unstructured, defaults, values map[string]any) error {
	var problems []string

	for _, o := range objects {
		if err := checkType(o); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s", object.KeyOf(o), describeMistyped(err, o, defaults, values)))
		}
	}

	if len(problems) == 0 {
		return nil
	}

	return errors.New(strings.Join(problems, "; "))
}

// checkType returns what is wrong with an object, as an error of the package typed.
func checkType(o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	if typed.Known(kind) {
		return typed.Check(o)
	}

	return typed.CheckAs(o, func() any { return newTyped(kind) })
}

func newTyped(kind schema.GroupVersionKind) any {
	if known, err := scheme.Scheme.New(kind); err == nil {
		return known
	}

	return &metav1.PartialObjectMetadata{}
}

// describeMistyped completes the error for an object by the values that are its likely cause.
func describeMistyped(err error, o *unstructured.Unstructured, defaults, values map[string]any) string {
	var wrong *typed.Error
	if !errors.As(err, &wrong) || len(wrong.Path) == 0 {
		return err.Error()
	}

	given := map[string]any{}
	flattenValues(defaults, "", given)
	flattenValues(values, "", given)

	causes := causesOf(wrong, o, given)
	if len(causes) == 0 {
		return err.Error()
	}

	return fmt.Sprintf("%v; it comes from %s", err, strings.Join(causes, " or "))
}

// maxCauses is how many values are named as possible causes. If more values are the same, such as many that
// are true, none is named.
const maxCauses = 3

// causesOf describes the values that are equal to what was found in the field of an object, sorted. given are
// the values by their paths; a text counts as what it is in YAML.
func causesOf(wrong *typed.Error, o *unstructured.Unstructured, given map[string]any) []string {
	found := valuesAt(o.Object, wrong.Path)
	found = slices.DeleteFunc(found, func(value any) bool { return typed.Describe(value) != wrong.Found })

	var causes []string

	for path, value := range given {
		plain := plainValue(value)
		isFound := func(other any) bool { return reflect.DeepEqual(other, plain) }

		if slices.ContainsFunc(found, isFound) {
			causes = append(causes, describeCause(path))
		}
	}

	if len(causes) > maxCauses {
		return nil
	}

	slices.Sort(causes)

	return causes
}

func describeCause(path string) string {
	if name, ok := strings.CutPrefix(path, "variables."); ok {
		return "the variable " + name
	}

	return "the value " + path
}

// valuesAt returns the values at a path that has no indexes of lists, and may lack keys of maps.
func valuesAt(node any, path []string) []any {
	var values []any

	switch node := node.(type) {
	case []any:
		for _, child := range node {
			values = append(values, valuesAt(child, path)...)
		}
	case map[string]any:
		if len(path) > 0 && node[path[0]] != nil {
			return valuesAt(node[path[0]], path[1:])
		}

		for _, child := range node {
			values = append(values, valuesAt(child, path)...)
		}
	}

	if len(path) == 0 {
		values = append(values, normalize(node))
	}

	return values
}

// flattenValues adds the scalars in the values to a map by their paths, such as "variables.REGION". It leaves out
// lists.
func flattenValues(values map[string]any, prefix string, into map[string]any) {
	for key, value := range values {
		switch value := value.(type) {
		case map[string]any:
			flattenValues(value, prefix+key+".", into)
		case string, bool, int, int64, float64:
			into[prefix+key] = value
		}
	}
}

// plainValue returns what a value becomes where a template does not quote it.
func plainValue(value any) any {
	text, ok := value.(string)
	if !ok {
		return normalize(value)
	}

	var parsed any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		return nil
	}

	return parsed
}

// normalize returns a value with numbers as float64, as the YAML parser has them, to compare them.
func normalize(value any) any {
	switch value := value.(type) {
	case int:
		return float64(value)
	case int64:
		return float64(value)
	case []any:
		list := make([]any, 0, len(value))
		for _, item := range value {
			list = append(list, normalize(item))
		}

		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, child := range value {
			object[key] = normalize(child)
		}

		return object
	}

	return value
}
