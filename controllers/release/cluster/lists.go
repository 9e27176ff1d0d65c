package cluster

import (
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
)

// ResourceList are objects of a manifest, with what is needed for requests about them.
type ResourceList []*resource.Info

// Filter returns the objects for which the function returns true.
func (l ResourceList) Filter(matches func(*resource.Info) bool) ResourceList {
	return slices.DeleteFunc(slices.Clone(l), func(info *resource.Info) bool { return !matches(info) })
}

// Get returns the object of the list that is the same one in the cluster, of whatever version; nil if there is none.
func (l ResourceList) Get(info *resource.Info) *resource.Info {
	kind := info.Mapping.GroupVersionKind.GroupKind()

	i := slices.IndexFunc(l, func(o *resource.Info) bool {
		return o.Name == info.Name && o.Namespace == info.Namespace && o.Mapping.GroupVersionKind.GroupKind() == kind
	})
	if i < 0 {
		return nil
	}

	return l[i]
}

// concurrency is how many requests an action makes at the same time.
const concurrency = 16

// each calls the function for all objects in parallel, and returns one error for those that failed.
func (c *Client) each(list ResourceList, do func(*resource.Info) error) error {
	return c.aggregate(list, ForEach(list, do))
}

// ForEach calls the function for all objects in parallel, and returns the error of each.
func ForEach(list ResourceList, do func(*resource.Info) error) []error {
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
func (c *Client) aggregate(list ResourceList, errs []error) error {
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
func byKind(list ResourceList) []ResourceList {
	rank := func(info *resource.Info) int {
		if i := slices.Index(helm.InstallOrder, info.Mapping.GroupVersionKind.Kind); i >= 0 {
			return i
		}

		return len(helm.InstallOrder)
	}

	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *resource.Info) int { return rank(a) - rank(b) })

	var kinds []ResourceList

	for i, info := range sorted {
		if i == 0 || rank(info) != rank(sorted[i-1]) {
			kinds = append(kinds, nil)
		}

		kinds[len(kinds)-1] = append(kinds[len(kinds)-1], info)
	}

	return kinds
}

// missing returns the objects of the lists that the target does not have, each of them once.
func missing(lists []ResourceList, target ResourceList) ResourceList {
	var found ResourceList

	for _, info := range slices.Concat(lists...) {
		if target.Get(info) == nil && found.Get(info) == nil {
			found = append(found, info)
		}
	}

	return found
}
