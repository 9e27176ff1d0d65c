package chart

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("The admission policy for the status of providers", Ordered, func() {
	const (
		tenant          = "tenant"
		everything      = "all-writer"
		limited         = "limited-operator"
		anotherOperator = "system:serviceaccount:elsewhere:capstan"
	)

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "sample"}}
	refused := MatchError(ContainSubstring("only the operator may write the status of providers, not "))

	// write writes the status as a user.
	write := func(ctx context.Context, user, patch string) error {
		return asUser(user).Status().Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	contract := func(contract string) string { return `{"status":{"contract":"` + contract + `"}}` }

	BeforeAll(func(ctx SpecContext) {
		run(ctx, "helm", "install", release, light, "-n", namespace, "--create-namespace", "--set", "replicas=0")
		DeferCleanup(func(ctx SpecContext) { run(ctx, "helm", "uninstall", release, "-n", namespace) })

		ns := &corev1.Namespace{ObjectMeta: objectName(tenant)}
		Expect(admin.Create(ctx, ns)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.Delete(ctx, ns)).To(Succeed())
			Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(ns), ns) }).
				Should(MatchError(ContainSubstring("not found")), "the policy does not refuse the components of Kubernetes")
		})

		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "everything"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*", "*/*"}, Verbs: []string{"*"}}},
		}
		Expect(admin.Create(ctx, role)).To(Succeed())
		bind(ctx, rbacv1.RoleRef{Kind: "Role", Name: role.Name}, tenant, everything, limited)
		bind(ctx, rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace + "-operator"}, tenant, limited)
		Expect(admin.Create(ctx, p.DeepCopy())).To(Succeed())

		Eventually(write).WithArguments(ctx, everything, contract("v1beta1")).Should(refused)
	})
	AfterAll(removeAll)

	It("accepts it of the operator only, whatever a Role allows", func(ctx SpecContext) {
		for _, user := range []string{everything, limited} {
			Expect(write(ctx, user, contract("v1beta2"))).To(refused, user)
			Expect(write(ctx, user,
				`{"status":{"history":[{"revision":1,"digest":"v1:x","version":"v1.0.0","status":"deployed"}]}}`)).
				To(refused, user)
		}

		Expect(write(ctx, operatorUser, contract("v1beta2"))).To(Succeed())

		change := client.RawPatch(types.MergePatchType, []byte(contract("v1beta1")))
		Expect(admin.Status().Patch(ctx, p.DeepCopy(), change)).To(Succeed(), "as backup tools do")
	})

	It("recognizes another operator by a permission in the whole cluster, which no Role can grant", func(ctx SpecContext) {
		bind(ctx, rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace + "-operator"}, "", anotherOperator)
		Eventually(write).WithArguments(ctx, anotherOperator, contract("v1beta2")).Should(Succeed())
	})
})

// asUser returns a client of a user.
func asUser(user string) client.Client {
	GinkgoHelper()

	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := harness.NewClient(config)
	Expect(err).NotTo(HaveOccurred())

	return c
}

// bind binds a role to users in a namespace, or in the whole cluster if that is empty, until the specs end.
func bind(ctx context.Context, role rbacv1.RoleRef, namespace string, users ...string) {
	GinkgoHelper()

	role.APIGroup = rbacv1.GroupName
	meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: "binding-"}

	var subjects []rbacv1.Subject
	for _, user := range users {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user})
	}

	var b client.Object = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
	if namespace == "" {
		b = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
	}

	Expect(admin.Create(ctx, b)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, b))).To(Succeed()) })
}
