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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("The admission policies", Ordered, func() {
	const (
		tenant    = "tenant"
		writer    = "secret-writer"   // may write Secrets and ConfigMaps
		editor    = "provider-editor" // may write provider resources as well
		installer = "system:serviceaccount:" + tenant + ":installer"
	)

	// as returns a client of a user.
	as := func(user string) client.Client {
		GinkgoHelper()

		config := cluster.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		c, err := harness.NewClient(config)
		Expect(err).NotTo(HaveOccurred())

		return c
	}

	// record returns a new revision of a release, as Helm stores it.
	record := func(release string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: tenant, GenerateName: "sh.helm.release.v1." + release + ".v",
				Labels: map[string]string{"owner": "helm", "name": release, "status": "deployed", "version": "1"},
			},
			Type: "helm.sh/release.v1",
		}
	}

	// write tries to create a record as a user.
	write := func(ctx context.Context, user, release string) error { return as(user).Create(ctx, record(release)) }

	refused := MatchError(ContainSubstring("only users who may update that resource may change the release"))

	BeforeAll(func(ctx SpecContext) {
		run(ctx, "helm", "install", release, archive, "-n", namespace, "--create-namespace", "--set", "replicas=0")
		DeferCleanup(func(ctx SpecContext) {
			run(ctx, "helm", "uninstall", release, "-n", namespace)
		})

		ns := &corev1.Namespace{ObjectMeta: objectName(tenant)}
		Expect(admin.Create(ctx, ns)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, ns)).To(Succeed()) })

		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: writer},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"*"},
			}},
		}
		all := []string{writer, editor, installer, "system:serviceaccount:" + tenant + ":another"}
		objects := []client.Object{role, binding(tenant, rbacv1.RoleRef{Kind: "Role", Name: writer}, all...),
			binding(tenant, rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace + "-edit"}, editor)}

		for name, account := range map[string]string{"aws": "", "azure": "installer"} {
			p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}}
			p.Spec.ServiceAccountName = account
			objects = append(objects, p)
		}

		for _, o := range objects {
			Expect(admin.Create(ctx, o)).To(Succeed())
		}
	})

	It("refuse release records of a user who may write Secrets only", func(ctx SpecContext) {
		Eventually(write).WithArguments(ctx, writer, "infrastructure-aws").Should(refused)
		Eventually(write).WithArguments(ctx, writer, "infrastructure-azure").Should(refused)
		Expect(write(ctx, installer, "infrastructure-aws")).To(refused, "the operator itself installs this provider")
		Expect(write(ctx, "system:serviceaccount:"+tenant+":another", "infrastructure-azure")).To(refused)
	})

	It("protect the releases of all kinds of providers, whatever their names", func(ctx SpecContext) {
		long := strings.Repeat("long-", 8) + "label" // most releases have a shortened name

		for _, t := range v1alpha2.ProviderTypes() {
			for _, name := range []string{"sample", long} {
				if t == v1alpha2.CoreProviderType {
					name = "cluster-api"
				}

				p := t.New()
				p.SetNamespace(tenant)
				p.SetName(name)
				Expect(client.IgnoreAlreadyExists(admin.Create(ctx, p))).To(Succeed())
				Eventually(write).WithArguments(ctx, writer, v1alpha2.ReleaseName(p)).Should(refused, "%s %s", t, name)
			}
		}
	})

	It("refuse to turn another Secret into a release record, and the reverse", func(ctx SpecContext) {
		other := record("infrastructure-aws")
		other.Labels["name"] = "another"
		Expect(as(writer).Create(ctx, other)).To(Succeed())

		other.Labels["name"] = "infrastructure-aws"
		Expect(as(writer).Update(ctx, other)).To(refused)

		own := record("infrastructure-aws")
		Expect(as(editor).Create(ctx, own)).To(Succeed())

		own.Labels = nil
		Expect(as(writer).Update(ctx, own)).To(refused)
	})

	It("accept release records of the operator, its account for the resource, and users who may write the resource",
		func(ctx SpecContext) {
			Expect(write(ctx, operatorUser, "infrastructure-aws")).To(Succeed())
			Expect(write(ctx, installer, "infrastructure-azure")).To(Succeed())
			Expect(write(ctx, editor, "infrastructure-aws")).To(Succeed())
			Expect(write(ctx, editor, "infrastructure-azure")).To(Succeed())
		})

	It("do not concern other releases", func(ctx SpecContext) {
		Expect(write(ctx, writer, "infrastructure-gcp")).To(Succeed(), "there is no such resource")
		Expect(write(ctx, writer, "nginx")).To(Succeed())
	})

	It("refuse stored charts of all users but the operator", func(ctx SpecContext) {
		chart := func() *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: tenant, GenerateName: "chart-",
				Labels: map[string]string{"app.kubernetes.io/component": "capstan-chart"},
			}}
		}

		for _, user := range []string{writer, editor, installer} {
			Eventually(func() error { return as(user).Create(ctx, chart()) }).
				Should(MatchError(ContainSubstring("only the operator may write ConfigMaps that store charts, not " + user)))
		}

		Expect(as(operatorUser).Create(ctx, chart())).To(Succeed())
	})

	It("do not prevent releases in a cluster that has lost the operator's CRDs", func(ctx SpecContext) {
		removeAll(ctx)
		Consistently(write).WithArguments(ctx, writer, "nginx").WithTimeout(3 * time.Second).Should(Succeed())
	})
})

// binding binds a role to users, who may be ServiceAccounts, in a namespace.
func binding(namespace string, role rbacv1.RoleRef, users ...string) *rbacv1.RoleBinding {
	role.APIGroup = rbacv1.GroupName
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "binding-"},
		RoleRef:    role,
	}

	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user})
	}

	return b
}
