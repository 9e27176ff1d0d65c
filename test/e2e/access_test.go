package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("A Secret of another namespace", Ordered, func() {
	const level = "level-of-production"

	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "production"}})).To(Succeed())
		Expect(w.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: "settings"},
			StringData: map[string]string{"TINY_LEVEL": level},
		})).To(Succeed())
	})

	// reading returns the resource of a tiny provider that reads its variables there.
	reading := func(t tiny) *v1alpha2.InfrastructureProvider {
		p := t.resource()
		p.Spec.ConfigSecret = &v1alpha2.SecretReference{Namespace: "production", Name: "settings"}

		return p
	}

	It("is read for a resource with a ServiceAccount only if the account may read it", func(ctx SpecContext) {
		t := newTiny("reader", "v1.0.0")
		p := reading(t)
		p.Spec.ServiceAccountName = "installer"

		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "installer"}}
		subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: t.name, Name: account.Name}

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, account)).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		grantCRD(ctx, w, t)
		grant(ctx, w, t.name, "*", "*", "*")

		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MissingPermissionsReason,
			"system:serviceaccount:reader:installer may not get Secret production/settings, which the resource names; "+
				"grant it get for secrets in namespace production, or change the resource"))
		nothingIsApplied(ctx, w, t.name)

		By("granting the permission")

		role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "settings"}
		Expect(w.client.Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: role.Name},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
				ResourceNames: []string{"settings"},
			}},
		})).To(Succeed())
		Expect(w.client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: role.Name}, RoleRef: role,
			Subjects: []rbacv1.Subject{subject},
		})).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		By("checking which users have read it")

		requests, err := w.bed.Requests(func(r bed.Request) bool {
			return r.Verb == "get" && r.Namespace == "production" && r.Resource == "secrets"
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).NotTo(BeEmpty())
		Expect(requests).To(HaveEach(HaveField("User", "system:serviceaccount:reader:installer")))
	})

	It("is refused to all resources with --no-cross-namespace-refs", func(ctx SpecContext) {
		t := newTiny("without-account", "v1.0.0")
		p := reading(t)

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"), "as with cluster-api-operator")

		w.restart("--no-cross-namespace-refs")

		refused := "Secret production/settings is in another namespace than the resource that names it, which " +
			"--no-cross-namespace-refs does not allow; move it to namespace without-account"
		Eventually(w.read(ctx, p)).Should(And(
			beReady("v1.0.0"),
			haveCondition(v1alpha2.InputsUnavailableCondition, metav1.ConditionTrue, v1alpha2.AccessDeniedReason, refused),
		))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftWarn}
		})
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.AccessDeniedReason, refused))
	})
})
