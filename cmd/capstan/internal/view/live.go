package view

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/drift"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// live reads the objects of a revision from the cluster, restricted to the fields that the revision sets, and returns
// them with what the revision defines. Objects that cannot be read are in neither list.
func (r *Reader) live(
	ctx context.Context, of compared,
) (live, defined []*unstructured.Unstructured, unknown []string, err error) {
	found := make([]*unstructured.Unstructured, len(of.objects))
	errs := make([]error, len(of.objects))

	var group errgroup.Group
	group.SetLimit(objectRequests)

	for i, o := range of.objects {
		group.Go(func() error {
			found[i], errs[i] = r.get(ctx, o)
			return ctx.Err()
		})
	}

	if err := group.Wait(); err != nil {
		return nil, nil, nil, err
	}

	for i, o := range of.objects {
		switch key := object.KeyOf(o); {
		case apierrors.IsNotFound(errs[i]) && storage.IsFinished(of.revision, key):
			// A Job that has completed is not missed.
		case apierrors.IsNotFound(errs[i]):
			defined = append(defined, o)
		case errs[i] != nil:
			unknown = append(unknown, key.String()+": "+errs[i].Error())
		default:
			o = drift.Comparable(o)
			defined = append(defined, o)
			live = append(live, &unstructured.Unstructured{Object: project(o.Object, found[i].Object).(map[string]any)})
		}
	}

	return live, defined, unknown, nil
}

// get reads an object of a release from the cluster.
func (r *Reader) get(ctx context.Context, recorded *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(recorded.GroupVersionKind())

	return live, r.Client.Get(ctx, client.ObjectKeyFromObject(recorded), live)
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
		switch current, exists := live[key]; {
		case exists && value != nil:
			part[key] = project(value, current)
		case isZero(value): // the API server leaves out what is empty
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
