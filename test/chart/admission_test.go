package chart

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/test/harness"
)

// The users of the specs about admission policies. All of them may write Secrets and ConfigMaps in the namespace
// tenant.
const (
	tenant    = "tenant"
	writer    = "secret-writer"   // may do nothing else
	editor    = "provider-editor" // may write provider resources as well
	installer = "system:serviceaccount:" + tenant + ":installer"
)

var (
	refused      = MatchError(ContainSubstring("only users who may update that resource may change the release"))
	refusedMarks = MatchError(ContainSubstring("only users who may update the provider may change its records"))
)

var _ = Describe("The admission policies", Ordered, func() {
	const another = "system:serviceaccount:" + tenant + ":another"

	BeforeAll(func(ctx SpecContext) {
		installPolicies(ctx)
		newUser(ctx, another)

		for name, account := range map[string]string{"aws": "", "azure": "installer"} {
			p := newProvider(v1alpha2.InfrastructureProviderType, name)
			p.GetSpec().ServiceAccountName = account
			Expect(admin.Create(ctx, p)).To(Succeed())
		}
	})

	It("refuse release records of a user who may write Secrets only", func(ctx SpecContext) {
		for _, user := range []string{writer, another, installer} {
			Eventually(write).WithArguments(ctx, user, "infrastructure-aws").Should(refused, user)
			Eventually(write).WithArguments(ctx, user, "infrastructure-azure").Should(refused, user)
			Expect(mark(ctx, user, "infrastructure-aws")).NotTo(Succeed(), user)
			Expect(mark(ctx, user, "infrastructure-azure")).NotTo(Succeed(), user)
		}
	})

	It("protect the releases of all kinds of providers, whatever their names", func(ctx SpecContext) {
		long := strings.Repeat("long-", 8) + "label" // most releases have a shortened name

		for _, t := range v1alpha2.ProviderTypes() {
			for _, name := range []string{"sample", long} {
				if t == v1alpha2.CoreProviderType {
					name = v1alpha2.CoreProviderName
				}

				p := newProvider(t, name)
				Expect(client.IgnoreAlreadyExists(admin.Create(ctx, p))).To(Succeed())
				Eventually(write).WithArguments(ctx, writer, v1alpha2.ReleaseName(p)).Should(refused, "%s %s", t, name)
			}
		}
	})

	It("refuse to turn another Secret into a release record, and the reverse", func(ctx SpecContext) {
		other := record("infrastructure-aws")
		other.Labels["name"] = "another"
		Expect(asUser(writer).Create(ctx, other)).To(Succeed())

		other.Labels["name"] = "infrastructure-aws"
		Expect(asUser(writer).Update(ctx, other)).To(refused)

		own := record("infrastructure-aws")
		Expect(asUser(editor).Create(ctx, own)).To(Succeed())

		own.Labels = nil
		Expect(asUser(writer).Update(ctx, own)).To(refused)
		Expect(asUser(writer).Delete(ctx, own)).To(refused)
		Expect(asUser(editor).Delete(ctx, own)).To(Succeed())
	})

	It("accept release records of the operator, also as an account, and of users who may write the resource",
		func(ctx SpecContext) {
			for _, name := range []string{"infrastructure-aws", "infrastructure-azure"} {
				for _, user := range []string{operatorUser, editor} {
					Expect(write(ctx, user, name)).To(Succeed(), "%s by %s", name, user)
					Expect(mark(ctx, user, name)).To(Succeed(), "%s by %s", name, user)
				}
			}

			operator := asUser(installer, clusters.OperatorExtra)
			Expect(operator.Create(ctx, record("infrastructure-azure"))).To(Succeed())
			Expect(operator.Create(ctx, marked("infrastructure-azure"))).To(Succeed())
		})

	It("recognize the operator by what other users may not add to an account", func(ctx SpecContext) {
		developer := cluster.Config()
		developer.CertData, developer.KeyData = nil, nil
		developer.BearerToken = accountToken(ctx, "developer", "edit") // which includes impersonation of ServiceAccounts

		write := func(extra ...string) error {
			developer.Impersonate = impersonation(installer, extra...)
			c, err := typedcorev1.NewForConfig(developer)
			Expect(err).NotTo(HaveOccurred())
			_, err = c.Secrets(tenant).Create(ctx, record("addon-other"), metav1.CreateOptions{})

			return err
		}

		Eventually(func() error { return write() }).Should(Succeed())
		Expect(write(clusters.OperatorExtra)).
			To(MatchError(ContainSubstring(`cannot impersonate resource "userextras/capstan.dev/operator"`)))
	})

	It("do not concern other releases", func(ctx SpecContext) {
		Expect(write(ctx, writer, "infrastructure-gcp")).To(Succeed(), "there is no such resource")
		Expect(write(ctx, writer, "nginx")).To(Succeed())
	})

	It("do not prevent releases in a cluster that has lost the operator's CRDs", func(ctx SpecContext) {
		removeAll(ctx)
		Consistently(write).WithArguments(ctx, writer, "nginx").WithTimeout(3 * time.Second).Should(Succeed())
	})
})

// installPolicies installs the chart, and creates the namespace with its users, until the container of specs ends.
func installPolicies(ctx context.Context) {
	GinkgoHelper()

	run(ctx, "helm", "install", release, archive, "-n", namespace, "--create-namespace", "--set", "replicas=0")
	DeferCleanup(func(ctx SpecContext) {
		run(ctx, "helm", "uninstall", release, "-n", namespace)
	})

	ns := &corev1.Namespace{ObjectMeta: objectName(tenant)}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(admin.Delete(ctx, ns)).To(Succeed())
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(ns), ns) }).
			Should(MatchError(ContainSubstring("not found")), "the policies do not refuse the components of Kubernetes")
	})

	for _, user := range []string{writer, editor, installer} {
		newUser(ctx, user)
	}

	edit := rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace + "-edit"}
	Expect(admin.Create(ctx, binding(tenant, edit, editor))).To(Succeed())
	Eventually(func() error { return asUser(editor).Create(ctx, marked("addon-first")) }).Should(Succeed())
	Eventually(func() error { return asUser(writer).Create(ctx, marked("addon-second")) }).Should(refusedMarks)
}

// newUser returns a user who may write Secrets and ConfigMaps in the namespace tenant, and do what the rules allow
// there.
func newUser(ctx context.Context, name string, rules ...rbacv1.PolicyRule) string {
	GinkgoHelper()

	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, GenerateName: "role-"},
		Rules: append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"*"},
		}),
	}
	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, binding(tenant, rbacv1.RoleRef{Kind: "Role", Name: role.Name}, name))).To(Succeed())

	plain := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, GenerateName: "plain-"}}
	}

	Eventually(func() error { return asUser(name).Create(ctx, plain()) }).
		Should(Succeed(), "the permissions have taken effect")

	return name
}

// asUser returns a client of a user, with extra information about it.
func asUser(user string, extra ...string) client.Client {
	GinkgoHelper()

	config := cluster.Config()
	config.Impersonate = impersonation(user, extra...)
	c, err := harness.NewClient(config)
	Expect(err).NotTo(HaveOccurred())

	return c
}

func impersonation(user string, extra ...string) rest.ImpersonationConfig {
	impersonated := rest.ImpersonationConfig{UserName: user, Extra: map[string][]string{}}
	for _, key := range extra {
		impersonated.Extra[key] = []string{"true"}
	}

	return impersonated
}

// record returns a new revision of a release, as Helm stores it.
func record(release string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, GenerateName: "sh.helm.release.v1." + release + ".v",
			Labels: map[string]string{"owner": "helm", "name": release, "status": "deployed", "version": "1"},
		},
		Type: "helm.sh/release.v1",
	}
}

// marked returns a new revision of a release, with a label of the operator.
func marked(release string) *corev1.Secret {
	r := record(release)
	r.Labels[storage.RevisionLabel] = "1"

	return r
}

// write creates a record as a user.
func write(ctx context.Context, user, release string) error {
	return asUser(user).Create(ctx, record(release))
}

// mark creates a record with a label of the operator as a user.
func mark(ctx context.Context, user, release string) error {
	return asUser(user).Create(ctx, marked(release))
}

// newProvider returns a provider in the namespace tenant, which need not exist.
func newProvider(t v1alpha2.ProviderType, name string) v1alpha2.Provider {
	p := t.New()
	p.SetNamespace(tenant)
	p.SetName(name)

	return p
}

// binding binds a role to users, who may be ServiceAccounts, in a namespace.
func binding(namespace string, role rbacv1.RoleRef, users ...string) *rbacv1.RoleBinding {
	role.APIGroup = rbacv1.GroupName

	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "binding-"},
		RoleRef:    role,
		Subjects:   subjects(users...),
	}
}

// bindEverywhere binds a ClusterRole to users in the whole cluster, until the spec ends.
func bindEverywhere(ctx context.Context, role string, users ...string) {
	GinkgoHelper()

	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "binding-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects(users...),
	}
	Expect(admin.Create(ctx, b)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, b)).To(Succeed()) })
}

func subjects(users ...string) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, user := range users {
		all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user})
	}

	return all
}
