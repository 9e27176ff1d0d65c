package apply

import (
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
)

// Objects are objects of a manifest.
type Objects []*unstructured.Unstructured

// filter returns the objects for which the function returns true.
func (l Objects) filter(matches func(*unstructured.Unstructured) bool) Objects {
	return slices.DeleteFunc(slices.Clone(l), func(o *unstructured.Unstructured) bool { return !matches(o) })
}

// keys returns the keys of the objects.
func (l Objects) keys() []object.Key {
	keys := make([]object.Key, 0, len(l))
	for _, o := range l {
		keys = append(keys, object.KeyOf(o))
	}

	return keys
}

// concurrency is how many requests an action makes at the same time.
const concurrency = 16

// each calls the function for all objects in parallel, and returns one error for those that failed.
func (c *Client) each(list Objects, do func(*unstructured.Unstructured) error) error {
	_, errs := forEach(list, func(o *unstructured.Unstructured) (struct{}, error) { return struct{}{}, do(o) })
	return c.aggregate(list, errs)
}

// change calls the function for all objects in parallel, and returns what became of each, and one error for those that
// failed.
func (c *Client) change(list Objects, do func(*unstructured.Unstructured) (Result, error)) (Results, error) {
	results, errs := forEach(list, do)

	for i, o := range list {
		results[i].Object = object.KeyOf(o)

		if errs[i] != nil {
			results[i].Outcome, results[i].Failure = Failed, newObjectError(results[i].Object, errs[i])
		}
	}

	return results, c.aggregate(list, errs)
}

// forEach calls the function for all objects in parallel, and returns the result and the error of each.
func forEach[T any](list Objects, do func(*unstructured.Unstructured) (T, error)) ([]T, []error) {
	results, errs := make([]T, len(list)), make([]error, len(list))

	var group errgroup.Group
	group.SetLimit(concurrency)

	for i, o := range list {
		group.Go(func() error {
			results[i], errs[i] = do(o)
			return nil
		})
	}

	_ = group.Wait() // always nil, the errors are in errs

	return results, errs
}

// aggregate returns one error for the objects that failed: of the worst kind, with all objects that
// failed in this way.
func (c *Client) aggregate(list Objects, errs []error) error {
	var (
		conflicts             []Conflict
		rejected, unavailable []*ObjectError
	)

	for i, err := range errs {
		if err == nil {
			continue
		}

		key := object.KeyOf(list[i])

		var refused adoptionError

		switch {
		case errors.As(err, &refused):
			conflicts = append(conflicts, Conflict{Object: key, Reason: string(refused)})
		case object.IsRefusal(err):
			rejected = append(rejected, newRefusal(list[i], err))
		default:
			unavailable = append(unavailable, newObjectError(key, err))
		}
	}

	switch {
	case len(conflicts) > 0:
		return &ConflictError{Release: c.release.String(), Conflicts: conflicts}
	case len(rejected) > 0:
		return &RejectedError{Objects: rejected}
	case len(unavailable) > 0:
		return &UnavailableError{Objects: unavailable}
	}

	return nil
}

// byKind splits a list by kind, in Helm's order of installation. Kinds that Helm does not know come
// last, together.
func byKind(list Objects) []Objects {
	rank := func(o *unstructured.Unstructured) int {
		if i := slices.Index(helm.InstallOrder, o.GetKind()); i >= 0 {
			return i
		}

		return len(helm.InstallOrder)
	}

	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })

	var kinds []Objects

	for i, o := range sorted {
		if i == 0 || rank(o) != rank(sorted[i-1]) {
			kinds = append(kinds, nil)
		}

		kinds[len(kinds)-1] = append(kinds[len(kinds)-1], o)
	}

	return kinds
}
