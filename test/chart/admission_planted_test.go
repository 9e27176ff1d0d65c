package chart

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

var _ = Describe("Without any provider, the admission policies", Ordered, func() {
	// releases returns the releases of a kind, of which most have a shortened name as well.
	releases := func(t v1alpha2.ProviderType) []string {
		if t == v1alpha2.CoreProviderType {
			return []string{v1alpha2.CoreProviderName}
		}

		long := newProvider(t, strings.Repeat("long-", 8)+"label")

		return []string{v1alpha2.ReleaseName(newProvider(t, "sample")), v1alpha2.ReleaseName(long)}
	}

	// updating is a rule that allows to update a kind of providers, or those with the names.
	updating := func(resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{v1alpha2.GroupVersion.Group}, Resources: []string{resource}, ResourceNames: names,
			Verbs: []string{"update"},
		}
	}

	BeforeAll(func(ctx SpecContext) {
		installPolicies(ctx)
		DeferCleanup(removeAll)
	})

	It("refuse the record that a user plants who may write Secrets only, whatever its kind", func(ctx SpecContext) {
		for _, t := range v1alpha2.ProviderTypes() {
			for _, name := range releases(t) {
				Expect(mark(ctx, writer, name)).To(refusedMarks, name)
			}
		}

		untyped := marked("infrastructure-aws")
		untyped.Type = corev1.SecretTypeOpaque
		Expect(asUser(writer).Create(ctx, untyped)).To(refusedMarks)

		unowned := marked("infrastructure-aws")
		delete(unowned.Labels, "owner")
		Expect(asUser(writer).Create(ctx, unowned)).To(refusedMarks)
	})

	It("accept records of users who may update that provider, not of those who may update others", func(ctx SpecContext) {
		aws := newUser(ctx, "aws-updater", updating("infrastructureproviders", "aws"))
		addons := newUser(ctx, "addon-updater", updating("addonproviders"))

		for _, t := range v1alpha2.ProviderTypes() {
			for _, name := range releases(t) {
				Expect(mark(ctx, editor, name)).To(Succeed(), name)
				Expect(mark(ctx, aws, name)).To(refusedMarks, name)

				if t == v1alpha2.AddonProviderType {
					Expect(mark(ctx, addons, name)).To(Succeed(), name)
				} else {
					Expect(mark(ctx, addons, name)).To(refusedMarks, name)
				}
			}
		}

		Expect(mark(ctx, aws, "infrastructure-aws")).To(Succeed())
	})

	It("accept records that belong to no kind of provider of the operator only", func(ctx SpecContext) {
		for _, name := range []string{"nginx", "cluster-api-2", "infrastructure"} {
			Expect(mark(ctx, editor, name)).To(refusedMarks, name)
			Expect(mark(ctx, operatorUser, name)).To(Succeed(), name)
		}

		nameless := marked("infrastructure-aws")
		delete(nameless.Labels, "name")
		Expect(asUser(editor).Create(ctx, nameless)).To(refusedMarks)
	})

	It("refuse to add the operator's labels to a record, to remove them, and to delete the record", func(ctx SpecContext) {
		own := record("infrastructure-gcp")
		Expect(asUser(writer).Create(ctx, own)).To(Succeed())

		own.Labels[storage.RevisionLabel] = "1"
		Expect(asUser(writer).Update(ctx, own)).To(refusedMarks)
		Expect(asUser(editor).Update(ctx, own)).To(Succeed())

		for _, change := range []func(*corev1.Secret){
			func(s *corev1.Secret) { s.Labels = nil },
			func(s *corev1.Secret) { delete(s.Labels, storage.RevisionLabel) },
			func(s *corev1.Secret) { s.Labels["owner"] = "another" },
			func(s *corev1.Secret) { s.Labels["name"] = "another" },
			func(s *corev1.Secret) { s.Data = map[string][]byte{"release": []byte("another")} },
		} {
			changed := own.DeepCopy()
			change(changed)
			Expect(asUser(writer).Update(ctx, changed)).To(refusedMarks)
		}

		Expect(asUser(writer).Delete(ctx, own)).To(refusedMarks)
		Expect(asUser(writer).DeleteAllOf(ctx, own, client.InNamespace(tenant), client.MatchingLabels(own.Labels))).
			To(refusedMarks)
		Expect(asUser(editor).Delete(ctx, own)).To(Succeed())
	})

	It("recognize another operator by a permission in the whole cluster, which no Role can grant", func(ctx SpecContext) {
		const anotherOperator = "system:serviceaccount:elsewhere:capstan"

		role := rbacv1.RoleRef{Kind: "ClusterRole", Name: namespace + "-operator"}
		status := newUser(ctx, "status-writer",
			rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*/status"}, Verbs: []string{"*"}})
		limited := newUser(ctx, "limited-operator")
		Expect(admin.Create(ctx, binding(tenant, role, limited))).To(Succeed())
		newUser(ctx, anotherOperator)
		bindEverywhere(ctx, role.Name, anotherOperator)

		Eventually(mark).WithArguments(ctx, anotherOperator, "infrastructure-aws").Should(Succeed())

		for _, user := range []string{status, limited} {
			Expect(mark(ctx, user, "infrastructure-aws")).To(refusedMarks, user)
		}
	})

	It("allow helm to those who may update the provider, and to all for other releases", func(ctx SpecContext) {
		chart := plainChart()
		as := func(user string, args ...string) (string, error) {
			return try(ctx, helm, append(args, "-n", tenant, "--kube-as-user", user)...)
		}
		ours := []string{"--labels", storage.RevisionLabel + "=1"}

		out, err := as(writer, append(ours, "install", "infrastructure-hand", chart)...)
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("only users who may update the provider may change its records"))

		out, err = as(editor, append(ours, "install", "infrastructure-hand", chart)...)
		Expect(err).NotTo(HaveOccurred(), out)

		for _, args := range [][]string{
			{"upgrade", "infrastructure-hand", chart, "--history-max", "2"},
			{"upgrade", "infrastructure-hand", chart, "--history-max", "2"},
			{"rollback", "infrastructure-hand"},
			{"uninstall", "infrastructure-hand"},
		} {
			out, err = as(writer, args...)
			Expect(err).To(HaveOccurred(), "%s %s", args, out)
			out, err = as(editor, args...)
			Expect(err).NotTo(HaveOccurred(), "%s %s", args, out)
		}

		for _, args := range [][]string{
			{"install", "infrastructure-other", chart},
			{"upgrade", "infrastructure-other", chart},
			{"rollback", "infrastructure-other"},
			{"uninstall", "infrastructure-other"},
		} {
			out, err = as(writer, args...)
			Expect(err).NotTo(HaveOccurred(), "%s %s", args, out)
		}
	})
})

// plainChart returns the folder of a chart with a ConfigMap.
func plainChart() string {
	GinkgoHelper()

	folder := GinkgoT().TempDir()
	Expect(os.Mkdir(filepath.Join(folder, "templates"), 0o700)).To(Succeed())

	for name, content := range map[string]string{
		"Chart.yaml":               "{apiVersion: v2, name: plain, version: 1.0.0}",
		"templates/configmap.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}",
	} {
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
	}

	return folder
}
