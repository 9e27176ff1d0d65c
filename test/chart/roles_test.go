package chart

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("The roles for users", Ordered, func() {
	const (
		editor = "editor"
		viewer = "viewer"
	)

	BeforeAll(func(ctx SpecContext) {
		run(ctx, "helm", "install", release, light, "-n", namespace, "--create-namespace", "--set", "replicas=0")
		DeferCleanup(func(ctx SpecContext) {
			run(ctx, "helm", "uninstall", release, "-n", namespace)
			removeAll(ctx)
		})

		for user, role := range map[string]string{editor: namespace + "-edit", viewer: namespace + "-view"} {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: objectName(user),
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
			}
			binding.Namespace = "default"
			Expect(admin.Create(ctx, binding)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, binding)).To(Succeed()) })
		}
	})

	// allowed reports whether a user may do something with a kind in the namespace default.
	allowed := func(ctx context.Context, user, verb, resource, subresource string) bool {
		GinkgoHelper()

		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: verb,
				Group: v1alpha2.GroupVersion.Group, Resource: resource, Subresource: subresource,
			},
		}}
		Expect(admin.Create(ctx, review)).To(Succeed())

		return review.Status.Allowed
	}

	It("allow an editor to read and write providers of every kind", func(ctx SpecContext) {
		for _, definition := range definitions(ctx) {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				Eventually(allowed).WithArguments(ctx, editor, verb, definition.Spec.Names.Plural, "").
					Should(BeTrue(), "%s %s", verb, definition.Name)
			}
		}
	})

	It("do not allow an editor to write the status and the finalizers", func(ctx SpecContext) {
		for _, definition := range definitions(ctx) {
			for _, subresource := range []string{"status", "finalizers"} {
				for _, verb := range []string{"get", "create", "update", "patch", "delete"} {
					Expect(allowed(ctx, editor, verb, definition.Spec.Names.Plural, subresource)).
						To(BeFalse(), "%s %s/%s", verb, definition.Name, subresource)
				}
			}
		}
	})

	It("allow a viewer to read providers, and nothing else", func(ctx SpecContext) {
		for _, definition := range definitions(ctx) {
			plural := definition.Spec.Names.Plural
			for _, verb := range []string{"get", "list", "watch"} {
				Eventually(allowed).WithArguments(ctx, viewer, verb, plural, "").Should(BeTrue(), "%s %s", verb, plural)
			}

			for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
				Expect(allowed(ctx, viewer, verb, plural, "")).To(BeFalse(), "%s %s", verb, plural)
			}

			Expect(allowed(ctx, viewer, "patch", plural, "status")).To(BeFalse(), plural)
		}
	})
})
