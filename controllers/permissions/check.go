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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// maxRequests limits the requests in flight.
const maxRequests = 8

// MissingError reports which permissions an account lacks.
type MissingError struct {
	// Account is the user name of the account.
	Account string
	// AccountNotFound reports whether the account's ServiceAccount does not exist.
	AccountNotFound bool
	// Permissions are those that are missing, sorted.
	Permissions []Permission
	// Grants describe the Roles and bindings of the provider that grant more than the account has,
	// sorted.
	Grants []string
}

func (e *MissingError) Error() string {
	missing := make([]string, 0, len(e.Permissions)+len(e.Grants))
	for _, p := range e.Permissions {
		missing = append(missing, p.String())
	}

	missing = append(missing, e.Grants...)

	lacks := "lacks"
	if e.AccountNotFound {
		lacks = "does not exist and lacks"
	}

	return fmt.Sprintf(
		"%s %s permissions that the provider needs: %s; grant them, or set another spec.serviceAccountName",
		e.Account, lacks, strings.Join(missing, "; "))
}

// Checker checks the permissions of an account.
type Checker struct {
	// Client acts as the account.
	Client client.Client
	// Account is the user name of the account.
	Account string
}

// Check checks whether the account has the needed permissions, and may grant what the Roles and
// bindings among the objects grant. It changes nothing. The error is a *MissingError if permissions
// are missing, and any other error if the check could not be made.
func (c *Checker) Check(ctx context.Context, needed []Permission, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)

	denied := make([]Permission, len(needed))
	for i, permission := range needed {
		group.Go(func() (err error) {
			denied[i], err = c.denied(ctx, permission)
			return err
		})
	}

	grants := make([]string, len(objects))
	for i, o := range objects {
		if o.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}

		group.Go(func() error {
			grants[i] = c.refusedGrant(ctx, o)
			return nil
		})
	}

	if err := group.Wait(); err != nil {
		return fmt.Errorf("check the permissions of %s: %w", c.Account, err)
	}

	missing := &MissingError{
		Account:     c.Account,
		Permissions: slices.DeleteFunc(denied, func(p Permission) bool { return len(p.Verbs) == 0 }),
		Grants:      slices.DeleteFunc(grants, func(grant string) bool { return grant == "" }),
	}
	if len(missing.Permissions)+len(missing.Grants) == 0 {
		return nil
	}

	slices.SortFunc(missing.Permissions, func(a, b Permission) int {
		return strings.Compare(a.String(), b.String())
	})
	slices.Sort(missing.Grants)

	return missing
}

// denied returns the permission with only the verbs that the account may not use.
func (c *Checker) denied(ctx context.Context, needed Permission) (Permission, error) {
	denied := Permission{Namespace: needed.Namespace, Resource: needed.Resource}

	for _, verb := range needed.Verbs {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: needed.Namespace,
					Verb:      verb,
					Group:     needed.Resource.Group,
					Resource:  needed.Resource.Resource,
				},
			},
		}
		if err := c.Client.Create(ctx, review); err != nil {
			return Permission{}, err
		}

		if !review.Status.Allowed {
			denied.Verbs = append(denied.Verbs, verb)
		}
	}

	return denied, nil
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
