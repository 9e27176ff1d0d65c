package asks

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Bounds of the annotations, and of how many different values the objects of a release may have: each wave costs
// a few requests.
const (
	minOrder  = math.MinInt16
	maxOrder  = math.MaxInt16
	maxOrders = 100
)

// lastOrder is the order of objects of a release's own kinds that have no annotation: they follow all others.
const lastOrder = maxOrder + 1

// Order is what the annotations of an object say about its order.
type Order struct {
	apply, remove *int // nil if the annotation is absent or invalid
}

// OrderOf returns the order of an object. Invalid annotations have no effect: Check reports them before a release
// is changed, and what is installed must be removable in any case.
func OrderOf(o metav1.Object) Order {
	annotations := o.GetAnnotations()

	return Order{
		apply:  known(annotations, v1alpha2.ApplyOrderAnnotation),
		remove: known(annotations, v1alpha2.DeleteOrderAnnotation),
	}
}

func known(annotations map[string]string, annotation string) *int {
	order, err := strconv.Atoi(annotations[annotation])
	if err != nil || order < minOrder || order > maxOrder {
		return nil
	}

	return &order
}

// Place is a position in the order of a release; lower ones come first. Objects with the same place are a wave: they
// are applied together once those of all earlier waves are healthy, and deleted together once those of all earlier
// waves are gone. Objects of the release's own kinds follow the others of the same order when they are applied, and
// precede them when they are deleted: they need the release's manager.
type Place int

// Applied returns where an object comes when the release is applied. own reports whether its kind is the release's
// own.
func (o Order) Applied(own bool) Place {
	place := Place(2 * o.applied(own))
	if own {
		place++
	}

	return place
}

// Deleted returns where an object comes when it is deleted.
func (o Order) Deleted(own bool) Place {
	order := -o.applied(own)
	if o.remove != nil {
		order = *o.remove
	}

	place := Place(2 * order)
	if own {
		place--
	}

	return place
}

func (o Order) applied(own bool) int {
	switch {
	case o.apply != nil:
		return *o.apply
	case own:
		return lastOrder
	default:
		return 0
	}
}

// Split returns the waves of a list in the order of their places. Items keep their order within a wave.
func Split[L ~[]T, T any](list L, place func(T) Place) []L {
	found := map[Place]L{}

	for _, item := range list {
		at := place(item)
		found[at] = append(found[at], item)
	}

	split := make([]L, 0, len(found))
	for _, at := range slices.Sorted(maps.Keys(found)) {
		split = append(split, found[at])
	}

	return split
}

// Held is an object of a release that waits for earlier waves to be healthy.
type Held struct {
	Object object.Key
	Place  Place
	// Own is true if the object's kind is the release's own.
	Own bool
}

// Reason says what the object waits for.
func (h Held) Reason() string {
	if h.Place == (Order{}).Applied(true) {
		return "is applied once the provider's manager is healthy"
	}

	return fmt.Sprintf("is applied with %s %d, once all objects that come before are healthy",
		v1alpha2.ApplyOrderAnnotation, h.Place>>1)
}

// Hold returns the objects of a release that wait after the waves up to a place were applied, the next ones first.
func Hold(
	objects []*unstructured.Unstructured, isOwn func(*unstructured.Unstructured) bool, applied Place,
) []Held {
	var held []Held

	for _, o := range objects {
		own := isOwn(o)
		if place := OrderOf(o).Applied(own); place > applied {
			held = append(held, Held{Object: object.KeyOf(o), Place: place, Own: own})
		}
	}

	slices.SortStableFunc(held, func(a, b Held) int { return cmp.Compare(a.Place, b.Place) })

	return held
}

// checkOrders returns a *problem.Error if an order of a release's objects is invalid, or its waves are too many.
func checkOrders(objects []*unstructured.Unstructured) error {
	for _, annotation := range []string{v1alpha2.ApplyOrderAnnotation, v1alpha2.DeleteOrderAnnotation} {
		orders := map[int]bool{}

		for _, o := range objects {
			annotations := o.GetAnnotations()
			if _, annotated := annotations[annotation]; !annotated {
				continue
			}

			order := known(annotations, annotation)
			if order == nil {
				return problem.Fail(v1alpha2.InstallFailedReason, "the annotation %s of %s must be an integer from %d to %d",
					annotation, object.KeyOf(o), minOrder, maxOrder)
			}

			orders[*order] = true
		}

		if len(orders) > maxOrders {
			return problem.Fail(v1alpha2.InstallFailedReason, "the annotation %s has %d different values, more than %d; "+
				"give the same one to objects that can be applied or deleted together",
				annotation, len(orders), maxOrders)
		}
	}

	return nil
}
