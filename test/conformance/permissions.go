package conformance

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// checkPermissions checks that a manager may list and watch each kind of the provider. If there are several
// managers, one of them suffices. Templates are not reconciled.
func (c *check) checkPermissions(ctx context.Context, components *bundle.Components, namespace string) error {
	accounts := managerAccounts(components)
	if len(accounts) == 0 {
		return nil
	}

	for _, doc := range components.Documents {
		kind, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "names", "kind")
		if !doc.IsCRD() || strings.HasSuffix(kind, "Template") {
			continue
		}

		for _, verb := range []string{"list", "watch"} {
			group, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "group")
			resource, _, _ := unstructured.NestedString(doc.Object.Object, "spec", "names", "plural")
			access := &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource}

			allowed, err := c.mayAny(ctx, namespace, accounts, access)
			if err != nil {
				return err
			}

			if !allowed {
				c.report(permissionRule, "has no manager that may %s %s; its accounts are %s",
					verb, doc.Object.GetName(), strings.Join(accounts, ", "))
			}
		}
	}

	return nil
}

// mayAny reports whether one of the ServiceAccounts has a permission.
func (c *check) mayAny(
	ctx context.Context,
	namespace string,
	accounts []string,
	access *authorizationv1.ResourceAttributes,
) (bool, error) {
	for _, account := range accounts {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               serviceaccount.MakeUsername(namespace, account),
				Groups:             serviceaccount.MakeGroupNames(namespace),
				ResourceAttributes: access,
			},
		}
		if err := c.client.Create(ctx, review); err != nil {
			return false, err
		}

		if review.Status.Allowed {
			return true, nil
		}
	}

	return false, nil
}

// managerAccounts returns the ServiceAccounts of the provider's Deployments.
func managerAccounts(components *bundle.Components) []string {
	var accounts []string

	for _, doc := range components.Documents {
		if doc.Object.GetKind() != "Deployment" {
			continue
		}

		account, _, _ := unstructured.NestedString(
			doc.Object.Object, "spec", "template", "spec", "serviceAccountName")
		if account == "" {
			account = "default"
		}

		accounts = append(accounts, account)
	}

	return accounts
}
