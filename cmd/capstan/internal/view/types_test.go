package view_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// allowed are the structs that facts may consist of. A struct that is added here leaves the program: none of its
// fields may contain the value of a variable or of a Secret.
var allowed = []reflect.Type{
	reflect.TypeFor[view.Provider](),
	reflect.TypeFor[view.Verdict](),
	reflect.TypeFor[view.Object](),
	reflect.TypeFor[view.Details](),
	reflect.TypeFor[view.Variable](),
	reflect.TypeFor[view.CRD](),
	reflect.TypeFor[view.Event](),
	reflect.TypeFor[view.Revision](),
	reflect.TypeFor[view.Comparison](),
	reflect.TypeFor[objectdiff.Change](),
	reflect.TypeFor[v1alpha2.ChartStatus](),
	reflect.TypeFor[v1alpha2.ReleaseStatus](),
	reflect.TypeFor[v1alpha2.AvailableUpgrade](),
	reflect.TypeFor[v1alpha2.UpgradePolicy](),
	reflect.TypeFor[v1alpha2.MaintenanceWindow](),
	reflect.TypeFor[metav1.Duration](),
	reflect.TypeFor[v1alpha2.AutomaticUpgradeStatus](),
	reflect.TypeFor[v1alpha2.PendingUpgrade](),
	reflect.TypeFor[v1alpha2.AutomaticUpgrade](),
	reflect.TypeFor[metav1.Condition](),
	reflect.TypeFor[metav1.Time](),
	reflect.TypeFor[time.Time](),
}

// TestTypes checks that facts consist of listed structs, and of no maps, bytes or values of any type, which could
// contain anything.
func TestTypes(t *testing.T) {
	for _, root := range []reflect.Type{
		reflect.TypeFor[view.Provider](), reflect.TypeFor[view.Revision](), reflect.TypeFor[view.Comparison](),
	} {
		checkType(t, root.Name(), root)
	}
}

func checkType(t *testing.T, path string, checked reflect.Type) {
	t.Helper()

	switch checked.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int32, reflect.Int64:
	case reflect.Pointer, reflect.Slice:
		checkType(t, path, checked.Elem())
	case reflect.Struct:
		for _, a := range allowed {
			if a == checked {
				checkFields(t, path, checked)
				return
			}
		}

		t.Errorf("%s: the struct %s is not allowed", path, checked)
	default:
		t.Errorf("%s: the type %s is not allowed", path, checked)
	}
}

// checkFields checks the fields that are encoded.
func checkFields(t *testing.T, path string, checked reflect.Type) {
	t.Helper()

	for field := range checked.Fields() {
		if field.IsExported() && field.Type != checked {
			checkType(t, path+"."+field.Name, field.Type)
		}
	}
}
