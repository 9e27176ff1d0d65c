package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("A resource that cannot work", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		Eventually(w.read(ctx, newTiny("healthy", "v1.0.0").create(ctx, w, unmodified))).Should(beReady("v1.0.0"))
	})

	// goes deletes a resource, and waits until it is gone.
	goes := func(ctx context.Context, p v1alpha2.Provider) {
		GinkgoHelper()
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	}
	exists := func(ctx context.Context, o client.Object, key client.ObjectKey) bool {
		GinkgoHelper()

		err := w.client.Get(ctx, key, o)
		Expect(client.IgnoreNotFound(err)).To(Succeed())

		return err == nil
	}
	namespaced := func(ctx context.Context, namespace string) {
		GinkgoHelper()
		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	}
	core := func(namespace, name string) *v1alpha2.CoreProvider {
		p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		p.Spec.Version = "v1.0.0"

		return p
	}

	It("such as a second CoreProvider holds up no provider, and is deleted while others exist", func(ctx SpecContext) {
		namespaced(ctx, "a-second-core")

		p := core("a-second-core", "cluster-api")
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MoreThanOneProviderInstanceExistsReason,
			"is already installed by the resource in namespace cluster-api-system"))

		for i := range 5 {
			t := newTiny(fmt.Sprintf("beside%d", i), "v1.0.0")
			Eventually(w.read(ctx, t.create(ctx, w, unmodified))).Should(beReady("v1.0.0"))
		}

		goes(ctx, p)
	})

	It("because it has a wrong ServiceAccount is deleted", func(ctx SpecContext) {
		p := newTiny("misspelt", "v1.0.0").create(ctx, w, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.ServiceAccountName = "instaler"
		})
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.MissingPermissionsReason, "misspelt:instaler"))
		goes(ctx, p)
	})

	It("because it has no kubeconfig is deleted, even together with its namespace", func(ctx SpecContext) {
		away := func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
				LocalSecretReference: v1alpha2.LocalSecretReference{Name: "away"}, Key: "value",
			}}
		}
		first := newTiny("nowhere", "v1.0.0").create(ctx, w, away)
		Eventually(w.read(ctx, first)).Should(failPreflight(v1alpha2.KubeConfigErrorReason, "does not exist"))
		goes(ctx, first)

		second := newTiny("nowhere-either", "v1.0.0")
		p := second.create(ctx, w, away)
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.KubeConfigErrorReason, "does not exist"))
		Expect(w.operator.Stop()).To(Succeed())

		kubeconfig, err := os.ReadFile(w.bed.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(w.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "away"},
			Data:       map[string][]byte{"value": kubeconfig},
		})).To(Succeed())
		Expect(w.client.Delete(ctx, second.namespace())).To(Succeed())
		Eventually(gone(ctx, w, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "away"},
		})).Should(BeTrue())
		w.start()
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	// tenant installs a provider as an account that has the permissions for its namespace from Roles, and
	// those for the ClusterRole and the CRDs from a ClusterRole.
	tenant := func(ctx context.Context, name string) (tiny, *v1alpha2.InfrastructureProvider) {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		t.components += "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" +
			"metadata: {name: " + name + "-role}\n"

		for _, o := range []client.Object{t.namespace(), t.configMap()} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		grant(ctx, w, name, "*", "*", "*")
		grantEverywhere(ctx, w, name, rbacv1.PolicyRule{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
			Verbs: []string{"get", "list", "create", "patch", "delete"},
		}, rbacv1.PolicyRule{
			APIGroups: []string{apiextensionsv1.GroupName},
			Resources: []string{"customresourcedefinitions", "customresourcedefinitions/status"},
			Verbs:     []string{"get", "list", "watch", "create", "patch"},
		}, rbacv1.PolicyRule{
			APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "patch"},
		})

		p := t.resource()
		p.Spec.ServiceAccountName = "installer"
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		return t, p
	}
	// deletes returns the users who deleted an object of the kind.
	deletes := func(resource, name string) []string {
		GinkgoHelper()

		requests, err := w.bed.Requests(func(r bed.Request) bool {
			return r.Verb == "delete" && r.Resource == resource && r.Name == name
		})
		Expect(err).NotTo(HaveOccurred())

		var users []string
		for _, r := range requests {
			users = append(users, r.User)
		}

		return slices.Compact(users)
	}

	It("because its namespace has lost the account's RoleBindings is removed completely, as the account",
		func(ctx SpecContext) {
			t, p := tenant(ctx, "leaving")

			Expect(w.operator.Stop()).To(Succeed())
			Expect(w.client.Delete(ctx, t.namespace())).To(Succeed())
			Eventually(func(g Gomega) {
				bindings := &rbacv1.RoleBindingList{}
				g.Expect(w.client.List(ctx, bindings, client.InNamespace(t.name))).To(Succeed())
				g.Expect(bindings.Items).To(BeEmpty())
			}).Should(Succeed())
			w.start()
			Eventually(gone(ctx, w, p)).Should(BeTrue())
			Eventually(gone(ctx, w, t.namespace())).Should(BeTrue())
			Expect(exists(ctx, &rbacv1.ClusterRole{}, client.ObjectKey{Name: "leaving-role"})).To(BeFalse())
			Expect(deletes("clusterroles", "leaving-role")).To(HaveExactElements("system:serviceaccount:leaving:installer"))
		})

	It("because the account has lost its permissions names the one that is missing and the finalizer",
		func(ctx SpecContext) {
			t, p := tenant(ctx, "revoked")
			revoked := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "*-*"}}
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(revoked), revoked)).To(Succeed())
			Expect(w.client.Delete(ctx, revoked)).To(Succeed())
			Expect(w.client.Delete(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason,
				"release revoked/infrastructure-revoked cannot be uninstalled",
				`User "system:serviceaccount:revoked:installer" cannot list resource "secrets"`,
				"; grant that permission, or remove the finalizer "+v1alpha2.Finalizer+" from this resource, "+
					"which leaves release revoked/infrastructure-revoked behind",
			))
			Expect(exists(ctx, &rbacv1.ClusterRole{}, client.ObjectKey{Name: "revoked-role"})).To(BeTrue())

			revoked.ResourceVersion = ""
			Expect(w.client.Create(ctx, revoked)).To(Succeed())
			Eventually(gone(ctx, w, p)).Should(BeTrue())
			Expect(exists(ctx, &rbacv1.ClusterRole{}, client.ObjectKey{Name: "revoked-role"})).To(BeFalse())
		})

	It("because it is in use names only objects that the account may list", func(ctx SpecContext) {
		t, p := tenant(ctx, "discreet")
		hidden := t.object("v1", "secret-project")
		Expect(w.client.Create(ctx, hidden)).To(Succeed())
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason, "(e.g. default/secret-project)"))

		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "discreet-installer"}}
		Expect(w.client.Delete(ctx, binding)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.DeletionBlockedReason, "1 object still exists: 1 "+t.crd()+";"),
			Not(notBeReady(v1alpha2.DeletionBlockedReason, "secret-project")),
		))
		Expect(w.client.Delete(ctx, hidden)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason,
			"ClusterRole discreet-role could not be deleted", `"system:serviceaccount:discreet:installer" cannot get`,
			"; grant that permission, or remove the finalizer"))

		binding = clusterBinding(t.name)
		Expect(w.client.Create(ctx, binding)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	It("because its version does not exist is deleted, whatever webhooks of others are down", func(ctx SpecContext) {
		others := newTiny("others", "v1.0.0")
		Expect(w.client.Create(ctx, others.definition(nil))).To(Succeed())
		Eventually(func() error { return w.client.Create(ctx, others.object("v1", "old")) }).Should(Succeed())
		breakConversion(ctx, w, others)
		DeferCleanup(repairConversion, w, others)

		t := newTiny("unpublished", "v1.0.0")
		p := t.create(ctx, w, func(p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "v9.9.9" })
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.VersionNotFoundReason))

		installed := newTiny("forgetful", "v1.0.0").create(ctx, w, unmodified)
		Eventually(w.read(ctx, installed)).Should(beReady("v1.0.0"))

		By("restarting the operator, which discovers the broken kind")

		Expect(w.operator.Stop()).To(Succeed())
		Expect(w.client.DeleteAllOf(
			ctx, &corev1.Secret{}, client.InNamespace("forgetful"), client.MatchingLabels{"owner": "helm"},
		)).To(Succeed())
		Expect(w.client.Delete(ctx, installed)).To(Succeed())
		w.start()
		goes(ctx, p)

		By("removing a release without records, which has no object of that kind")
		Eventually(gone(ctx, w, installed)).Should(BeTrue())
		Expect(exists(ctx, &corev1.ServiceAccount{}, client.ObjectKey{Namespace: "forgetful", Name: "forgetful-manager"})).
			To(BeFalse())
	})
})

// grantEverywhere gives the tenant's installer permissions in all namespaces.
func grantEverywhere(ctx context.Context, w *world, tenant string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()

	binding := clusterBinding(tenant)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Rules: rules}

	Expect(w.client.Create(ctx, role)).To(Succeed())
	Expect(w.client.Create(ctx, binding)).To(Succeed())
}

func clusterBinding(tenant string) *rbacv1.ClusterRoleBinding {
	name := tenant + "-installer"

	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: tenant, Name: "installer"}},
	}
}
