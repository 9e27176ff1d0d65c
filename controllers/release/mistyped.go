package release

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

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
	if !errors.As(err, &wrong) || wrong.Field == "" {
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
