package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// accessTime is how long answers about permissions are used, and maxAnswers how many of them.
const (
	accessTime = 5 * time.Minute
	maxAnswers = 2000
)

// watchAccess knows what the user of a connection may watch, so that no forbidden request is sent.
type watchAccess struct {
	reviews    authorizationclient.SelfSubjectAccessReviewInterface
	mapper     meta.RESTMapper
	namespaces []string // that are watched; empty for all

	known *cache.LRUExpireCache // of ResourceAttributes, whether they are allowed
}

func (c Connection) newAccess() (*watchAccess, error) {
	client, err := authorizationclient.NewForConfigAndClient(c.Config, c.HTTPClient)
	if err != nil {
		return nil, err
	}

	return &watchAccess{
		reviews:    client.SelfSubjectAccessReviews(),
		mapper:     c.Mapper,
		namespaces: slices.Sorted(maps.Keys(c.Namespaces)),
		known:      cache.NewLRUExpireCache(maxAnswers),
	}, nil
}

// mayWatch reports whether the user may list and watch the objects of a kind. The error is a
// NoKindMatchError if the API server does not serve the kind.
func (a *watchAccess) mayWatch(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, err
	}

	namespaces := []string{metav1.NamespaceAll}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && len(a.namespaces) > 0 {
		namespaces = a.namespaces
	}

	for _, namespace := range namespaces {
		for _, verb := range []string{"list", "watch"} {
			permitted, err := a.permits(ctx, namespace, verb, mapping.Resource.GroupResource())
			if err != nil || !permitted {
				return false, err
			}
		}
	}

	return true, nil
}

// permits reports whether a verb is permitted for a resource. An operator that may use the verb for all
// resources, which is usual, asks only that.
func (a *watchAccess) permits(
	ctx context.Context, namespace, verb string, resource schema.GroupResource,
) (bool, error) {
	for _, of := range []schema.GroupResource{{Group: "*", Resource: "*"}, resource} {
		permitted, err := a.ask(ctx, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: of.Group, Resource: of.Resource,
		})
		if err != nil || permitted {
			return permitted, err
		}
	}

	return false, nil
}

// ask returns a known answer, or asks the API server. Meanwhile other questions do not wait.
func (a *watchAccess) ask(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	if known, asked := a.known.Get(attributes); asked {
		return known.(bool), nil
	}

	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}

	review, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the permission to %s %s: %w", attributes.Verb, attributes.Resource, err)
	}

	a.known.Add(attributes, review.Status.Allowed, accessTime)

	return review.Status.Allowed, nil
}
