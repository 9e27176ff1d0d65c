// Package permissions finds out whether an account may do all that installing a provider takes,
// before anything of it is applied.
package permissions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// parallel is how many questions are asked at a time.
const parallel = 8

// Access is verbs on a resource, in a namespace or, if that is empty, in the whole cluster.
type Access struct {
	Namespace string
	Resource  schema.GroupResource
	Verbs     []string
}

func (a Access) String() string {
	where := ""
	if a.Namespace != "" {
		where = " in namespace " + a.Namespace
	}

	return fmt.Sprintf("%s %s%s", strings.Join(a.Verbs, ", "), a.Resource, where)
}

// MissingError says what an account may not do.
type MissingError struct {
	Account string
	// Absent says that there is no such ServiceAccount.
	Absent bool
	// Missing accesses, sorted.
	Missing []Access
	// Grants are the objects of the provider that hand on more than the account has, and what, in
	// the API server's words.
	Grants []string
}

func (e *MissingError) Error() string {
	parts := make([]string, 0, len(e.Missing)+len(e.Grants))
	for _, a := range e.Missing {
		parts = append(parts, a.String())
	}

	parts = append(parts, e.Grants...)

	lacks := "lacks"
	if e.Absent {
		lacks = "does not exist and lacks"
	}

	return fmt.Sprintf(
		"%s %s permissions that the provider needs: %s; grant them to it, or name another spec.serviceAccountName",
		e.Account,
		lacks,
		strings.Join(parts, "; "),
	)
}

// Needed are the accesses that it takes to install, upgrade, correct and remove objects.
func Needed(mapper meta.RESTMapper, objects []*unstructured.Unstructured) ([]Access, error) {
	needed := map[string]Access{}

	for _, o := range objects {
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if meta.IsNoMatchError(err) {
			continue // a kind that the provider's own CRDs bring, or that is told of when it is applied
		}

		if err != nil {
			return nil, fmt.Errorf("look up the kind of %s %s: %w", o.GetKind(), o.GetName(), err)
		}

		a := Access{
			Namespace: o.GetNamespace(),
			Resource:  mapping.Resource.GroupResource(),
			Verbs:     []string{"get", "create", "patch", "delete"},
		}
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			a.Namespace = ""
		}

		needed[a.Namespace+"/"+a.Resource.String()] = a
	}

	var all []Access
	for _, key := range slices.Sorted(maps.Keys(needed)) {
		all = append(all, needed[key])
	}

	return all, nil
}

// Storage is what Helm's records in a namespace take.
func Storage(namespace string) Access {
	return Access{
		Namespace: namespace,
		Resource:  schema.GroupResource{Resource: "secrets"},
		Verbs:     []string{"get", "list", "create", "update", "patch", "delete"},
	}
}

// CRDs is what applying CustomResourceDefinitions takes.
var CRDs = Access{
	Resource: schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	Verbs:    []string{"get", "create", "patch"},
}

// Namespaces is what putting labels on a namespace takes.
var Namespaces = Access{Resource: schema.GroupResource{Resource: "namespaces"}, Verbs: []string{"patch"}}

// Check asks whether the account that as acts for may do all that, and hand on the rights that the
// Roles and bindings among the objects hand on. It changes nothing. The error is a *MissingError,
// or says why that could not be found out.
func Check(
	ctx context.Context,
	as client.Client,
	account string,
	needed []Access,
	objects []*unstructured.Unstructured,
) error {
	missing := &MissingError{Account: account}

	var mu sync.Mutex

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)

	for _, access := range needed {
		group.Go(func() error {
			lacking, err := lacking(ctx, as, access)
			if len(lacking) > 0 {
				mu.Lock()
				defer mu.Unlock()

				missing.Missing = append(missing.Missing, Access{access.Namespace, access.Resource, lacking})
			}

			return err
		})
	}

	for _, o := range objects {
		if o.GroupVersionKind().Group != "rbac.authorization.k8s.io" {
			continue
		}

		group.Go(func() error {
			if grant := handsOn(ctx, as, o); grant != "" {
				mu.Lock()
				defer mu.Unlock()

				missing.Grants = append(missing.Grants, grant)
			}

			return nil
		})
	}

	if err := group.Wait(); err != nil {
		return fmt.Errorf("find out what %s may do: %w", account, err)
	}

	if len(missing.Missing)+len(missing.Grants) == 0 {
		return nil
	}

	slices.SortFunc(missing.Missing, func(a, b Access) int { return strings.Compare(a.String(), b.String()) })
	slices.Sort(missing.Grants)

	return missing
}

// lacking are the verbs that the account may not use.
func lacking(ctx context.Context, as client.Client, a Access) ([]string, error) {
	var verbs []string

	for _, verb := range a.Verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: a.Namespace,
				Verb:      verb,
				Group:     a.Resource.Group,
				Resource:  a.Resource.Resource,
			},
		}}
		if err := as.Create(ctx, review); err != nil {
			return nil, err
		}

		if !review.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}

	return verbs, nil
}

// handsOn tries, without doing it, to apply a Role or a binding: the API server lets nobody hand on
// rights that he does not have.
func handsOn(ctx context.Context, as client.Client, o *unstructured.Unstructured) string {
	trial := o.DeepCopy()
	err := as.Apply(
		ctx,
		client.ApplyConfigurationFromUnstructured(trial),
		client.FieldOwner(v1alpha2.FieldOwner),
		client.ForceOwnership,
		client.DryRunAll,
	)

	status := apierrors.APIStatus(nil)
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return "" // whatever else is wrong is told when it is applied
	}

	_, reason, found := strings.Cut(status.Status().Message, "is attempting to grant RBAC permissions not currently held:")
	if !found {
		return "" // a verb that lacks, which is asked for by itself
	}

	rights := strings.Join(strings.Fields(reason), " ")

	const most = 600
	if len(rights) > most {
		rights = rights[:most] + " …"
	}

	return fmt.Sprintf("%s %s hands on rights that it does not have itself: %s", o.GetKind(), o.GetName(), rights)
}
