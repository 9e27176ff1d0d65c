package manifest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// CheckType returns an error if a field of an object has a value of the wrong type. It knows the fields of the kinds of
// Kubernetes, and the metadata of all others, and ignores fields that a type does not have. The error names the field
// without indexes of lists, and perhaps without keys of maps. It contains no values.
func CheckType(o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	newObject := func() any {
		if kind == apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
			return &apiextensionsv1.CustomResourceDefinition{}
		}

		if known, err := scheme.Scheme.New(kind); err == nil {
			return known
		}

		return &metav1.PartialObjectMetadata{}
	}

	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, newObject()) == nil {
		return nil
	}

	return describe(o.Object, newObject)
}

// describe returns the error for an object that cannot be converted: the converter does not say which
// field it is.
func describe(object map[string]any, newObject func() any) error {
	const format = "the field %s is %s, expected %s"

	var wrong *json.UnmarshalTypeError
	if errors.As(decodePart(object, newObject), &wrong) && wrong.Field != "" {
		return fmt.Errorf(format, wrong.Field, describeValue(wrong.Value), describeType(wrong.Type))
	}

	path, found, err := locate(object, func(part any) error { return decodePart(part, newObject) })
	if len(path) == 0 {
		return errors.New("a field has a value of another type than its kind requires")
	}

	return fmt.Errorf(format, strings.Join(path, "."), describeKind(found), describeFormat(err))
}

// decodePart returns why a part of an object cannot be decoded.
func decodePart(part any, newObject func() any) error {
	data, err := json.Marshal(part)
	if err != nil {
		return err
	}

	return json.Unmarshal(data, newObject())
}

// locate returns the path and the value of the innermost field that cannot be decoded, and why. Types that decode
// themselves, such as quantities and base64, do not report where they are.
func locate(node any, decode func(part any) error) (path []string, found any, err error) {
	switch node := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			in := func(part any) error { return decode(map[string]any{key: part}) }
			if in(node[key]) != nil {
				path, found, err = locate(node[key], in)

				return append([]string{key}, path...), found, err
			}
		}
	case []any:
		for _, item := range node {
			in := func(part any) error { return decode([]any{part}) }
			if in(item) != nil {
				return locate(item, in)
			}
		}
	}

	return nil, node, decode(node)
}

// describeFormat describes what a text must be that a type fails to decode.
func describeFormat(err error) string {
	var corrupt base64.CorruptInputError

	switch {
	case errors.As(err, &corrupt):
		return inBase64
	case errors.Is(err, resource.ErrFormatWrong), errors.Is(err, resource.ErrSuffix), errors.Is(err, resource.ErrNumeric):
		return "a quantity, such as 100m or 1Gi"
	}

	return "one in the format that its kind requires"
}

// inBase64 describes a text that represents bytes.
const inBase64 = "one in base64: encode it with base64 -w0"

// describeValue describes what encoding/json found, such as "number 1.5", without the value.
func describeValue(found string) string {
	switch found {
	case "bool":
		return "a boolean"
	case "string":
		return "a text"
	case "array":
		return "a list"
	case "object":
		return "a map"
	}

	return "a number"
}

// describeKind describes the type of a value.
func describeKind(value any) string {
	switch value.(type) {
	case bool:
		return describeValue("bool")
	case string:
		return describeValue("string")
	case []any:
		return describeValue("array")
	case map[string]any:
		return describeValue("object")
	}

	return describeValue("number")
}

// describeType describes the type that a field must have.
func describeType(want reflect.Type) string {
	if want == reflect.TypeFor[[]byte]() {
		return "a text" + strings.TrimPrefix(inBase64, "one")
	}

	switch want.Kind() {
	case reflect.String:
		return "a text: put it in quotes"
	case reflect.Bool:
		return "a boolean, true or false without quotes"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a map"
	}

	return "a whole number without quotes"
}
