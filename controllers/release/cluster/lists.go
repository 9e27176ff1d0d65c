package cluster

import (
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/object"
)

// concurrency is how many requests an action makes at the same time.
const concurrency = 16

// each calls the function for all objects in parallel, and returns one error for those that failed.
func (c *Client) each(list kube.ResourceList, do func(*resource.Info) error) error {
	return c.aggregate(list, ForEach(list, do))
}

// ForEach calls the function for all objects in parallel, and returns the error of each.
func ForEach(list kube.ResourceList, do func(*resource.Info) error) []error {
	errs := make([]error, len(list))

	var group errgroup.Group
	group.SetLimit(concurrency)

	for i, info := range list {
		group.Go(func() error {
			errs[i] = do(info)
			return nil
		})
	}

	_ = group.Wait() // always nil, the errors are in errs

	return errs
}

// aggregate returns one error for the objects that failed: of the worst kind, with all objects that
// failed in this way.
func (c *Client) aggregate(list kube.ResourceList, errs []error) error {
	var (
		conflicts             []Conflict
		rejected, unavailable []*ObjectError
	)

	for i, err := range errs {
		if err == nil {
			continue
		}

		key := KeyOf(list[i])

		var refused adoptionError

		switch {
		case errors.As(err, &refused):
			conflicts = append(conflicts, Conflict{Object: key, Reason: string(refused)})
		case object.IsRefusal(err):
			rejected = append(rejected, newObjectError(key, err))
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
func byKind(list kube.ResourceList) []kube.ResourceList {
	rank := func(info *resource.Info) int {
		if i := slices.Index(releaseutil.InstallOrder, info.Mapping.GroupVersionKind.Kind); i >= 0 {
			return i
		}

		return len(releaseutil.InstallOrder)
	}

	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *resource.Info) int { return rank(a) - rank(b) })

	var kinds []kube.ResourceList

	for i, info := range sorted {
		if i == 0 || rank(info) != rank(sorted[i-1]) {
			kinds = append(kinds, nil)
		}

		kinds[len(kinds)-1] = append(kinds[len(kinds)-1], info)
	}

	return kinds
}

// find returns an object as the lists define it, from each list that has it.
func find(lists []kube.ResourceList, info *resource.Info) []runtime.Object {
	var found []runtime.Object

	for _, list := range lists {
		if same := list.Get(info); same != nil {
			found = append(found, same.Object)
		}
	}

	return found
}

// missing returns the objects of the lists that the target does not have, each of them once.
func missing(lists []kube.ResourceList, target kube.ResourceList) kube.ResourceList {
	var found kube.ResourceList

	for _, info := range slices.Concat(lists...) {
		if !target.Contains(info) && !found.Contains(info) {
			found.Append(info)
		}
	}

	return found
}
