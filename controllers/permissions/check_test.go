package permissions_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/controllers/permissions"
)

const account = "system:serviceaccount:tiny:installer"

// apiServer answers access reviews and dry runs.
type apiServer struct {
	// denied are the denied accesses, as "verb resource.group namespace".
	denied []string
	// refused are the errors of dry runs, by the object's name.
	refused map[string]error
	// broken is the error of all access reviews.
	broken error

	mu       sync.Mutex
	reviewed []string
	applied  []string // the names of the objects of dry runs
}

func (s *apiServer) client() client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Create: s.create, Apply: s.apply}).Build()
}

func (s *apiServer) create(
	_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	review := o.(*authorizationv1.SelfSubjectAccessReview)
	attributes := review.Spec.ResourceAttributes
	resource := schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}
	access := strings.TrimSpace(attributes.Verb + " " + resource.String() + " " + attributes.Namespace)
	s.reviewed = append(s.reviewed, access)

	review.Status.Allowed = true

	for _, denied := range s.denied {
		if denied == access {
			review.Status.Allowed = false
		}
	}

	return s.broken
}

func (s *apiServer) apply(
	_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	applied := &client.ApplyOptions{}
	applied.ApplyOptions(options)

	if len(applied.DryRun) == 0 {
		return errors.New("not a dry run")
	}

	name := o.(interface{ GetName() string }).GetName()
	s.applied = append(s.applied, name)

	return s.refused[name]
}

// refuse returns the API server's error for a Role that grants too much.
func refuse(name, list string) error {
	return apierrors.NewForbidden(rbacv1.Resource("roles"), name, errors.New(
		`user "x" is attempting to grant RBAC permissions not currently held:`+list))
}

func TestCheck(t *testing.T) {
	role := object("rbac.authorization.k8s.io/v1", "Role", "tiny", "manager")
	deployment := object("apps/v1", "Deployment", "tiny", "manager")
	needed := []permissions.Permission{permissions.ForHelmStorage("tiny"), permissions.ForCRDs()}

	for name, c := range map[string]struct {
		server *apiServer
		want   *permissions.MissingError
	}{
		"all permissions": {&apiServer{}, nil},
		"one verb": {
			&apiServer{denied: []string{"delete secrets tiny"}},
			&permissions.MissingError{
				Account: account,
				Permissions: []permissions.Permission{{
					Namespace: "tiny",
					Resource:  schema.GroupResource{Resource: "secrets"},
					Verbs:     []string{"delete"},
				}},
			},
		},
		"a verb in another namespace only": {&apiServer{denied: []string{"delete secrets other"}}, nil},
		"verbs of several resources, sorted": {
			&apiServer{denied: []string{
				"patch customresourcedefinitions.apiextensions.k8s.io",
				"list secrets tiny",
				"get secrets tiny",
			}},
			&permissions.MissingError{
				Account: account,
				Permissions: []permissions.Permission{
					{Namespace: "tiny", Resource: schema.GroupResource{Resource: "secrets"}, Verbs: []string{"get", "list"}},
					{
						Resource: schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
						Verbs:    []string{"patch"},
					},
				},
			},
		},
		"a Role that grants too much": {
			&apiServer{refused: map[string]error{
				"manager": refuse("manager", "\n{APIGroups:[\"batch\"], Resources:[\"jobs\"],\n Verbs:[\"get\"]}"),
			}},
			&permissions.MissingError{
				Account: account,
				Grants: []string{
					"Role manager grants permissions that the account does not have itself: " +
						`{APIGroups:["batch"], Resources:["jobs"], Verbs:["get"]}`,
				},
			},
		},
		"a Role that grants far too much": {
			&apiServer{refused: map[string]error{"manager": refuse("manager", strings.Repeat("x", 601))}},
			&permissions.MissingError{
				Account: account,
				Grants: []string{
					"Role manager grants permissions that the account does not have itself: " +
						strings.Repeat("x", 600) + " …",
				},
			},
		},
		"a Role that must not be patched, which is a verb": {
			&apiServer{refused: map[string]error{
				"manager": apierrors.NewForbidden(rbacv1.Resource("roles"), "manager", errors.New("cannot patch")),
			}},
			nil,
		},
		"a Role that is invalid": {
			&apiServer{refused: map[string]error{"manager": apierrors.NewBadRequest("invalid")}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			checker := &permissions.Checker{Client: c.server.client(), Account: account}
			err := checker.Check(t.Context(), needed, []*unstructured.Unstructured{deployment, role})

			g.Expect(c.server.reviewed).To(HaveLen(9), "each verb is reviewed")
			g.Expect(c.server.applied).To(Equal([]string{"manager"}), "only the Role is tried")

			if c.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			var missing *permissions.MissingError
			g.Expect(errors.As(err, &missing)).To(BeTrue(), "%v", err)
			g.Expect(missing.Account).To(Equal(c.want.Account))
			g.Expect(missing.Permissions).To(HaveExactElements(c.want.Permissions))
			g.Expect(missing.Grants).To(HaveExactElements(c.want.Grants))
		})
	}

	t.Run("an unreachable API server", func(t *testing.T) {
		g := NewWithT(t)
		server := &apiServer{broken: errors.New("connection refused")}
		checker := &permissions.Checker{Client: server.client(), Account: account}
		err := checker.Check(t.Context(), needed, nil)
		g.Expect(err).To(MatchError("check the permissions of " + account + ": connection refused"))
	})
}

func TestMissingError(t *testing.T) {
	missing := &permissions.MissingError{
		Account:     account,
		Permissions: []permissions.Permission{permissions.ForNamespaceLabels(), permissions.ForCRDs()},
		Grants:      []string{"Role manager grants permissions that the account does not have itself: {}"},
	}

	g := NewWithT(t)
	g.Expect(missing).To(MatchError(account + " lacks permissions that the provider needs: patch namespaces; " +
		"get, create, patch customresourcedefinitions.apiextensions.k8s.io; " +
		"Role manager grants permissions that the account does not have itself: {}; " +
		"grant them, or set another spec.serviceAccountName"))

	missing.AccountNotFound = true
	g.Expect(missing).To(MatchError(HavePrefix(account + " does not exist and lacks permissions that the provider ")))
}
