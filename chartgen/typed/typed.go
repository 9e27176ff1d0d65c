// Package typed finds values of the wrong type in objects, such as a number where a text belongs.
// clusterctl converts objects of some kinds to Go types, and refuses a provider if that fails.
package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Field is the path of the field without indexes of lists and keys of maps, or "" if it is unknown.
	Field string
	// Found and Expected describe the types, such as "a number".
	Found, Expected string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return "a field has a value of another type than its kind requires"
	}

	return fmt.Sprintf("the field %s is %s, expected %s", e.Field, e.Found, e.Expected)
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

// CheckMetadata is like Check for the metadata of an object of any kind.
func CheckMetadata(object *unstructured.Unstructured) error {
	metadata := &unstructured.Unstructured{Object: map[string]any{"metadata": object.Object["metadata"]}}

	return CheckAs(metadata, func() any { return &metav1.PartialObjectMetadata{} })
}

// CheckAs is like Check for an object whose type is that of the pointers that newObject returns.
func CheckAs(object *unstructured.Unstructured, newObject func() any) error {
	if fitsOf(reflect.TypeOf(newObject()))(object.Object) || convert(object, newObject()) == nil {
		return nil
	}

	return describe(object.Object, newObject())
}

// convert converts an object as clusterctl does.
func convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}

// describe returns the error for an object that cannot be converted: the converter does not say which
// field it is.
func describe(object map[string]any, into any) *Error {
	data, err := json.Marshal(object)
	if err != nil {
		return &Error{}
	}

	var wrong *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(data, into), &wrong) && wrong.Field != "" {
		return &Error{
			Field:    wrong.Field,
			Found:    describeValue(wrong.Value),
			Expected: describeType(wrong.Type),
		}
	}

	return &Error{}
}

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

// describeType describes the type that a field must have.
func describeType(want reflect.Type) string {
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
