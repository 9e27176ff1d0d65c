package permissions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// maxRequests limits the requests in flight.
const maxRequests = 8

// Checker checks the permissions of an account.
type Checker struct {
	// Client acts as the account.
	Client client.Client
	// Account is the user name of the account.
	Account string
	// Provider is the label of the provider.
	Provider string
}

// Check checks whether the account has the needed permissions, and may grant what the Roles and
// bindings among the objects grant. It changes nothing. The error is a *MissingError if permissions
// are missing, and any other error if the check could not be made.
func (c *Checker) Check(ctx context.Context, needed []Permission, objects []*unstructured.Unstructured) error {
	missing, err := c.missing(ctx, needed)
	if err != nil {
		return fmt.Errorf("check the permissions of %s: %w", c.Account, err)
	}

	grants := c.refusedGrants(ctx, objects)
	if len(missing)+len(grants) == 0 {
		return nil
	}

	return &MissingError{Account: c.Account, Provider: c.Provider, Permissions: missing, Grants: grants}
}

// missing returns the permissions that the account does not have.
func (c *Checker) missing(ctx context.Context, needed []Permission) ([]Permission, error) {
	inNamespace := map[string][]Permission{}
	for _, p := range needed {
		inNamespace[p.Namespace] = append(inNamespace[p.Namespace], p)
	}

	var missing []Permission

	for namespace, needed := range inNamespace {
		held, complete, err := c.rules(ctx, namespace)
		if err != nil {
			return nil, err
		}

		uncovered := uncovered(held, needed)
		if !complete {
			if uncovered, err = c.denied(ctx, uncovered); err != nil {
				return nil, err
			}
		}

		missing = append(missing, uncovered...)
	}

	return merge(missing), nil
}

// noNamespace is the name of no namespace, because it is not a valid one. What an account may do there,
// it may do in the whole cluster.
const noNamespace = "-"

// rules returns what the account may do in a namespace, or in the whole cluster, and whether that is
// all. Not every authorizer can list what an account may do; that of RBAC can.
func (c *Checker) rules(ctx context.Context, namespace string) (held []rbacv1.PolicyRule, complete bool, err error) {
	review := &authorizationv1.SelfSubjectRulesReview{}

	review.Spec.Namespace = namespace
	if namespace == "" {
		review.Spec.Namespace = noNamespace
	}

	if err := c.Client.Create(ctx, review); err != nil {
		return nil, false, err
	}

	for _, rule := range review.Status.ResourceRules {
		held = append(held, rbacv1.PolicyRule{
			Verbs:         rule.Verbs,
			APIGroups:     rule.APIGroups,
			Resources:     rule.Resources,
			ResourceNames: rule.ResourceNames,
		})
	}

	return held, !review.Status.Incomplete, nil
}

// uncovered returns the needed permissions of one namespace, or of the whole cluster, that no rule
// allows, each with one verb and at most one name.
func uncovered(held []rbacv1.PolicyRule, needed []Permission) []Permission {
	var missing []Permission

	for _, p := range needed {
		_, rules := validation.Covers(held, []rbacv1.PolicyRule{p.rule()})
		for _, rule := range rules {
			missing = append(missing, Permission{
				Namespace: p.Namespace, Resource: p.Resource, Names: rule.ResourceNames, Verbs: rule.Verbs,
			})
		}
	}

	return missing
}

// denied asks for each permission, with one verb and at most one name, and returns those that the
// account does not have.
func (c *Checker) denied(ctx context.Context, asked []Permission) ([]Permission, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)

	denied := make([]bool, len(asked))
	for i, p := range asked {
		group.Go(func() error {
			review := accessReview(p)
			err := c.Client.Create(ctx, review)
			denied[i] = !review.Status.Allowed

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	var missing []Permission

	for i, p := range asked {
		if denied[i] {
			missing = append(missing, p)
		}
	}

	return missing, nil
}

// accessReview asks for a permission with one verb and at most one name.
func accessReview(p Permission) *authorizationv1.SelfSubjectAccessReview {
	resource, subresource, _ := strings.Cut(p.Resource.Resource, "/")

	attributes := &authorizationv1.ResourceAttributes{
		Namespace:   p.Namespace,
		Verb:        p.Verbs[0],
		Group:       p.Resource.Group,
		Resource:    resource,
		Subresource: subresource,
	}
	if len(p.Names) > 0 {
		attributes.Name = p.Names[0]
	}

	return &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}
}

// refusedGrants describes what the account may not grant by the Roles and bindings among objects,
// sorted.
func (c *Checker) refusedGrants(ctx context.Context, objects []*unstructured.Unstructured) []string {
	var group errgroup.Group
	group.SetLimit(maxRequests)

	refused := make([]string, len(objects))
	for i, o := range objects {
		if o.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}

		group.Go(func() error {
			refused[i] = c.refusedGrant(ctx, o)
			return nil
		})
	}

	_ = group.Wait() // always nil

	refused = slices.DeleteFunc(refused, func(grant string) bool { return grant == "" })
	slices.Sort(refused)

	return refused
}

// refusal is how the API server begins the list of what an account may not grant.
const refusal = "is attempting to grant RBAC permissions not currently held:"

// maxGrant limits the length, in bytes, of the API server's list of what an account may not grant.
const maxGrant = 600

// refusedGrant describes what the account may not grant by a Role or binding; it is empty if there
// is nothing. The API server refuses to grant permissions that an account does not have itself, and
// a dry run finds out. Other errors are ignored: they appear when the object is applied.
func (c *Checker) refusedGrant(ctx context.Context, o *unstructured.Unstructured) string {
	err := c.Client.Apply(
		ctx,
		client.ApplyConfigurationFromUnstructured(o.DeepCopy()),
		client.FieldOwner(v1alpha2.FieldOwner),
		client.ForceOwnership,
		client.DryRunAll,
	)

	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return ""
	}

	_, list, found := strings.Cut(status.Status().Message, refusal)
	if !found {
		return "" // a verb is missing, and reported as such
	}

	permissions := strings.Join(strings.Fields(list), " ")
	if len(permissions) > maxGrant {
		permissions = permissions[:maxGrant] + " …"
	}

	return fmt.Sprintf(
		"%s %s grants permissions that the account does not have itself: %s", o.GetKind(), o.GetName(), permissions)
}
