package typed

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fits reports whether a value certainly converts to a type. It only compares the types of the values in it with
// those of the fields, which takes an eighth of the time of a conversion. If it reports false, only a conversion can
// tell, for example because a text would have to be parsed.
type fits func(value any) bool

// fitsByType has the result of fitsOf, a fits, by reflect.Type.
var fitsByType sync.Map

// fitsOf returns the function for a type.
func fitsOf(t reflect.Type) fits {
	if known, ok := fitsByType.Load(t); ok {
		return known.(fits)
	}

	// A type may contain itself, so its function is created when it is called.
	create := sync.OnceValue(func() fits { return newFits(t) })
	known, _ := fitsByType.LoadOrStore(t, fits(func(value any) bool { return create()(value) }))

	return known.(fits)
}

// alternatives are the types that decode themselves from a value of one of several types.
var alternatives = map[reflect.Type][]reflect.Type{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](): {
		reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), reflect.TypeFor[[]apiextensionsv1.JSONSchemaProps](),
	},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](): {
		reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), reflect.TypeFor[bool](),
	},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): {
		reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), reflect.TypeFor[[]string](),
	},
	reflect.TypeFor[intstr.IntOrString](): {reflect.TypeFor[int32](), reflect.TypeFor[string]()},
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func newFits(t reflect.Type) fits {
	switch {
	case t == reflect.TypeFor[apiextensionsv1.JSON]():
		return func(any) bool { return true }
	case t == reflect.TypeFor[metav1.Time]():
		return isNull // tools leave "creationTimestamp: null"
	case alternatives[t] != nil:
		return anyOf(alternatives[t])
	case reflect.PointerTo(t).Implements(unmarshaler):
		return never
	}

	ofKind := fitsKind(t)

	return func(value any) bool { return value == nil || ofKind(value) }
}

// fitsKind returns the function for values other than null.
func fitsKind(t reflect.Type) fits {
	switch t.Kind() {
	case reflect.String:
		return is[string]
	case reflect.Bool:
		return is[bool]
	case reflect.Int32, reflect.Int64:
		return isWhole
	case reflect.Float64:
		return is[float64]
	case reflect.Pointer:
		return fitsOf(t.Elem())
	case reflect.Slice:
		return listOf(fitsOf(t.Elem()))
	case reflect.Map:
		return mapOf(fitsOf(t.Elem()))
	case reflect.Struct:
		return structOf(t)
	}

	return never
}

func never(any) bool { return false }

func isNull(value any) bool { return value == nil }

func is[T any](value any) bool {
	_, ok := value.(T)

	return ok
}

// isWhole reports whether a value is a whole number that fits into 32 bits.
func isWhole(value any) bool {
	switch value := value.(type) {
	case int64:
		return value == int64(int32(value))
	case float64:
		return math.Abs(value) <= math.MaxInt32 && value == math.Trunc(value)
	}

	return false
}

func anyOf(types []reflect.Type) fits {
	return func(value any) bool {
		for _, t := range types {
			if fitsOf(t)(value) {
				return true
			}
		}

		return false
	}
}

func listOf(item fits) fits {
	return func(value any) bool {
		list, ok := value.([]any)

		for i := 0; ok && i < len(list); i++ {
			ok = item(list[i])
		}

		return ok
	}
}

func mapOf(element fits) fits {
	return func(value any) bool {
		object, ok := value.(map[string]any)

		for _, child := range object {
			if !element(child) {
				return false
			}
		}

		return ok
	}
}

// structOf returns the function for a structure. As in a conversion, other fields are ignored.
func structOf(t reflect.Type) fits {
	fields := map[string]fits{}
	addFields(fields, t)

	return func(value any) bool {
		object, ok := value.(map[string]any)

		for name, child := range object {
			if field := fields[name]; field != nil && !field(child) {
				return false
			}
		}

		return ok
	}
}

// addFields adds the fields of a structure by their names in JSON.
func addFields(fields map[string]fits, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)

		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Type.Kind() == reflect.Struct && field.Anonymous {
			addFields(fields, field.Type)
		} else {
			fields[name] = fitsOf(field.Type)
		}
	}
}
