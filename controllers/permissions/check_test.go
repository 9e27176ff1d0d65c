package permissions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// apiServer answers reviews and dry runs.
type apiServer struct {
	// rules are what the account may do, by namespace.
	rules map[string][]authorizationv1.ResourceRule
	// incomplete says that the rules are not all.
	incomplete bool
	// allowed are the accesses that the rules do not include, as "verb resource/name in namespace".
	allowed []string
	// refused are the errors of dry runs, by the object's name.
	refused map[string]error
	// broken is the error of all reviews.
	broken error

	mu       sync.Mutex
	reviewed []string // the namespaces whose rules, and the accesses that were asked for
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

	switch review := o.(type) {
	case *authorizationv1.SelfSubjectRulesReview:
		s.reviewed = append(s.reviewed, review.Spec.Namespace)
		review.Status.ResourceRules = s.rules[review.Spec.Namespace]
		review.Status.Incomplete = s.incomplete
	case *authorizationv1.SelfSubjectAccessReview:
		a := review.Spec.ResourceAttributes
		resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}
		access := fmt.Sprintf("%s %s/%s in %s", a.Verb, resource, strings.Trim(a.Subresource+"/"+a.Name, "/"), a.Namespace)
		s.reviewed = append(s.reviewed, access)
		review.Status.Allowed = slices.Contains(s.allowed, access)
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

// rule returns what a Role allows.
func rule(verbs, resource string, names ...string) authorizationv1.ResourceRule {
	group := schema.ParseGroupResource(resource)

	return authorizationv1.ResourceRule{
		Verbs:         strings.Split(verbs, ","),
		APIGroups:     []string{group.Group},
		Resources:     []string{group.Resource},
		ResourceNames: names,
	}
}

// permission returns a permission that may be limited to names.
func permission(namespace, verbs, resource string, names ...string) permissions.Permission {
	return permissions.Permission{
		Namespace: namespace,
		Resource:  schema.ParseGroupResource(resource),
		Names:     names,
		Verbs:     strings.Split(verbs, ","),
	}
}

const roles = "clusterroles.rbac.authorization.k8s.io"

// cluster is the namespace whose rules are those of the whole cluster.
const cluster = "-"

func TestCheck(t *testing.T) {
	role := object("rbac.authorization.k8s.io/v1", "Role", "tiny", "manager")
	deployment := object("apps/v1", "Deployment", "tiny", "manager")
	needed := []permissions.Permission{
		permission("tiny", "list,update", "secrets"),
		permission("", "get,patch", roles, "a", "b"),
		permission("", "patch", "widgets/status.example.com"),
	}

	type rules = map[string][]authorizationv1.ResourceRule

	inTiny := []authorizationv1.ResourceRule{rule("list,update,delete", "secrets")}
	onStatus := rule("patch", "widgets/status.example.com")
	everything := rules{"tiny": inTiny, cluster: {rule("get,patch", roles, "a", "b", "c"), onStatus}}

	for name, c := range map[string]struct {
		server   *apiServer
		missing  []string
		grants   []string
		reviewed []string
	}{
		"exactly what is needed, by name": {server: &apiServer{rules: everything}},
		"everything": {server: &apiServer{rules: rules{
			"tiny":  {{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
			cluster: {{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		}}},
		"all names": {server: &apiServer{rules: rules{"tiny": inTiny, cluster: {rule("get,patch", roles), onStatus}}}},
		"other names only": {
			server:  &apiServer{rules: rules{"tiny": inTiny, cluster: {rule("get,patch", roles, "c"), onStatus}}},
			missing: []string{"get, patch " + roles + " a, b"},
		},
		"one verb on one name is missing": {
			server: &apiServer{rules: rules{"tiny": inTiny, cluster: {
				rule("get", roles), rule("patch", roles, "a"), onStatus,
			}}},
			missing: []string{"patch " + roles + " b"},
		},
		"by name what cannot be limited by name": {
			server: &apiServer{rules: rules{
				"tiny":  {rule("list,update", "secrets", "a")},
				cluster: everything[cluster],
			}},
			missing: []string{"list, update secrets in namespace tiny"},
		},
		"in the namespace what is needed in the whole cluster": {
			server: &apiServer{rules: rules{"tiny": append(everything[cluster], inTiny...)}},
			missing: []string{
				"get, patch " + roles + " a, b",
				"patch widgets/status.example.com",
			},
		},
		"the object but not its status": {
			server: &apiServer{rules: rules{"tiny": inTiny, cluster: {
				rule("get,patch", roles), rule("patch", "widgets.example.com"),
			}}},
			missing: []string{"patch widgets/status.example.com"},
		},
		"a Role that grants too much": {
			server: &apiServer{rules: everything, refused: map[string]error{
				"manager": refuse("manager", "\n{APIGroups:[\"batch\"], Resources:[\"jobs\"],\n Verbs:[\"get\"]}"),
			}},
			grants: []string{"Role manager grants permissions that the account does not have itself: " +
				`{APIGroups:["batch"], Resources:["jobs"], Verbs:["get"]}`},
		},
		"a Role that grants far too much": {
			server: &apiServer{rules: everything, refused: map[string]error{
				"manager": refuse("manager", strings.Repeat("x", 601)),
			}},
			grants: []string{"Role manager grants permissions that the account does not have itself: " +
				strings.Repeat("x", 600) + " …"},
		},
		"a Role that must not be patched, which is a verb": {server: &apiServer{
			rules: everything,
			refused: map[string]error{
				"manager": apierrors.NewForbidden(rbacv1.Resource("roles"), "manager", errors.New("cannot patch")),
			},
		}},
		"a Role that is invalid": {server: &apiServer{
			rules:   everything,
			refused: map[string]error{"manager": apierrors.NewBadRequest("invalid")},
		}},
		"an authorizer that lists not all rules": {
			server: &apiServer{incomplete: true, rules: rules{"tiny": inTiny}, allowed: []string{
				"get " + roles + "/a in ", "get " + roles + "/b in ", "patch " + roles + "/a in ",
				"patch widgets.example.com/status in ",
			}},
			missing: []string{"patch " + roles + " b"},
			reviewed: []string{
				"get " + roles + "/a in ", "get " + roles + "/b in ",
				"patch " + roles + "/a in ", "patch " + roles + "/b in ",
				"patch widgets.example.com/status in ",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			checker := &permissions.Checker{Client: c.server.client(), Account: account, Provider: "tiny"}
			err := checker.Check(t.Context(), needed, []*unstructured.Unstructured{deployment, role})

			g.Expect(c.server.reviewed).To(ConsistOf(append(c.reviewed, "tiny", cluster)))
			g.Expect(c.server.applied).To(Equal([]string{"manager"}), "only the Role is tried")

			if c.missing == nil && c.grants == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			var missing *permissions.MissingError
			g.Expect(errors.As(err, &missing)).To(BeTrue(), "%v", err)
			g.Expect(missing.Account).To(Equal(account))
			g.Expect(texts(missing.Permissions)).To(HaveExactElements(c.missing))
			g.Expect(missing.Grants).To(HaveExactElements(c.grants))
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
		Account:  account,
		Provider: "infrastructure-tiny",
		Permissions: []permissions.Permission{
			permission("", "patch", "namespaces", "tiny"),
			permission("tiny", "get,delete", "roles.rbac.authorization.k8s.io", "a", "b", "c", "d", "e"),
		},
		Grants: []string{"Role manager grants permissions that the account does not have itself: {}"},
	}

	g := NewWithT(t)
	g.Expect(missing).To(MatchError(account + " lacks permissions that the provider needs: patch namespaces tiny; " +
		"get, delete roles.rbac.authorization.k8s.io a, b, c and 2 more in namespace tiny; " +
		"Role manager grants permissions that the account does not have itself: {}; " +
		"grant them, for example with the roles that `capstan permissions infrastructure-tiny` prints, " +
		"or set another spec.serviceAccountName"))

	missing.AccountNotFound = true
	g.Expect(missing).To(MatchError(HavePrefix(account + " does not exist and lacks permissions that the provider ")))

	for range 1000 {
		missing.Permissions = append(missing.Permissions, permission("", "patch", "namespaces", strings.Repeat("x", 63)))
	}

	g.Expect(missing).To(MatchError(MatchRegexp("; and [0-9]{3} more; grant them")))
	g.Expect(len(missing.Error())).To(BeNumerically("<", 1024), "the limit of an event")
}
