// Package typed finds values of the wrong type in objects, such as a number where a text belongs.
// clusterctl converts objects of some kinds to Go types, and refuses a provider if that fails.
package typed

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// types are the kinds that clusterctl converts.
var types = map[schema.GroupVersionKind]func() any{
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):          func() any { return &appsv1.DaemonSet{} },
	appsv1.SchemeGroupVersion.WithKind("Deployment"):         func() any { return &appsv1.Deployment{} },
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"): func() any { return &rbacv1.ClusterRoleBinding{} },
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):        func() any { return &rbacv1.RoleBinding{} },
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"): func() any {
		return &admissionregistrationv1.MutatingWebhookConfiguration{}
	},
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"): func() any {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	},
	admissionregistrationv1beta1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"): func() any {
		return &admissionregistrationv1beta1.MutatingWebhookConfiguration{}
	},
	admissionregistrationv1beta1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"): func() any {
		return &admissionregistrationv1beta1.ValidatingWebhookConfiguration{}
	},
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"): func() any {
		return &apiextensionsv1.CustomResourceDefinition{}
	},
	apiextensionsv1beta1.SchemeGroupVersion.WithKind("CustomResourceDefinition"): func() any {
		return &apiextensionsv1beta1.CustomResourceDefinition{}
	},
}

// Known reports whether Check knows the type of a kind.
func Known(kind schema.GroupVersionKind) bool { return types[kind] != nil }

// Error says which field of an object has a value of the wrong type. It contains no values.
type Error struct {
	// Path is that of the field without indexes of lists. It may lack keys of maps, and is empty if it is unknown.
	Path []string
	// Found and Expected describe the types, such as "a number".
	Found, Expected string
}

func (e *Error) Error() string {
	if len(e.Path) == 0 {
		return "a field has a value of another type than its kind requires"
	}

	return fmt.Sprintf("the field %s is %s, expected %s", strings.Join(e.Path, "."), e.Found, e.Expected)
}

// Check returns an error if an object of a known kind has a value of the wrong type. Like clusterctl, it
// ignores fields that the type does not have. The error is an *Error.
func Check(object *unstructured.Unstructured) error {
	newObject := types[object.GroupVersionKind()]
	if newObject == nil {
		return nil
	}

	return CheckAs(object, newObject)
}

// CheckAs is like Check for an object whose type is that of the pointers that newObject returns.
func CheckAs(object *unstructured.Unstructured, newObject func() any) error {
	if convert(object, newObject()) == nil {
		return nil
	}

	return describe(object.Object, newObject)
}

// convert converts an object as clusterctl does.
func convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}

// describe returns the error for an object that cannot be converted: the converter does not say which
// field it is.
func describe(object map[string]any, newObject func() any) *Error {
	var wrong *json.UnmarshalTypeError
	if errors.As(decode(object, newObject), &wrong) && wrong.Field != "" {
		return &Error{
			Path:     strings.Split(wrong.Field, "."),
			Found:    describeValue(wrong.Value),
			Expected: describeType(wrong.Type),
		}
	}

	path, found, err := locate(object, func(part any) error { return decode(part, newObject) })

	return &Error{Path: path, Found: Describe(found), Expected: describeFormat(err)}
}

// decode returns why a part of an object cannot be decoded.
func decode(part any, newObject func() any) error {
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

// Describe describes the type of a value as an Error does.
func Describe(value any) string {
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
