package callers

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviews is how many decisions about one caller are asked for at the same time.
const reviews = 8

// caller is who sent a request.
type caller struct {
	*Access

	name        string // of the user
	credentials credentials
	key         string // of the credentials
}

// resource is a resource of the API, and whether its objects have namespaces.
type resource struct {
	schema.GroupResource

	namespaced bool
}

// resourceOf returns the resource of a kind. For a kind that does not exist, such as in a release whose CRDs are gone,
// that is the whole group.
func (a *Access) resourceOf(kind schema.GroupVersionKind) (resource, error) {
	mapping, err := a.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return resource{schema.GroupResource{Group: kind.Group, Resource: "*"}, false}, nil
	}

	if err != nil {
		return resource{}, fmt.Errorf("find the resource of %s: %w", kind.Kind, err)
	}

	return resource{mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// may reports whether the caller may read all objects of a resource in a namespace, or if that is empty in the
// cluster. Permissions for single names do not count.
func (c *caller) may(ctx context.Context, verb string, of schema.GroupResource, namespace string) (bool, error) {
	key := strings.Join([]string{c.key, verb, of.String(), namespace}, "/")

	return c.decisions.get(ctx, key, func(ctx context.Context) (bool, error) {
		return c.reviewer.allows(ctx, c.credentials, &authorizationv1.ResourceAttributes{
			Verb: verb, Group: of.Group, Resource: of.Resource, Namespace: namespace,
		})
	})
}

// place is where objects of a resource are. The namespace is empty for those without.
type place struct {
	schema.GroupResource

	namespace string
}

// mayEach returns for each place whether the caller may read there.
func (c *caller) mayEach(ctx context.Context, verb string, places map[place]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviews)

	all := make([]place, 0, len(places))
	for at := range places {
		all = append(all, at)
	}

	allowed := make([]bool, len(all))

	for i, at := range all {
		group.Go(func() (err error) {
			allowed[i], err = c.may(ctx, verb, at.GroupResource, at.namespace)
			return err
		})
	}

	err := group.Wait()

	for i, at := range all {
		places[at] = allowed[i]
	}

	return err
}

// forbidden returns the error of a read that the caller may not do.
func (c *caller) forbidden(verb string, of schema.GroupResource, namespace string) error {
	where := "in the cluster"
	if namespace != "" {
		where = "in the namespace " + namespace
	}

	return apierrors.NewForbidden(of, "", fmt.Errorf("user %s may not %s them %s", c.name, verb, where))
}
