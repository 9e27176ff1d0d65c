package release_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
)

// annotated returns an object with an annotation of Capstan's.
func annotated(object, annotation, value string) string {
	return strings.Replace(object, "metadata:\n",
		"metadata:\n  annotations: {capstan.dev/"+annotation+": "+value+"}\n", 1)
}

// grantConfigMaps allows a user the verbs on ConfigMaps, and all on records of releases, in all namespaces. It waits
// until the API server knows.
func grantConfigMaps(ctx context.Context, user string, verbs ...string) {
	GinkgoHelper()

	_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())

	// The API server learns of the binding from a watch of its own.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"},
	}}

	Eventually(func(g Gomega) {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status.Allowed).To(BeTrue())
	}).Should(Succeed())
}

var _ = Describe("The policy of an object", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	value := func(ctx context.Context, name string) string {
		GinkgoHelper()
		return getConfigMap(ctx, namespace, name).Data["key"]
	}

	It("must be known", func(ctx SpecContext) {
		_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", configMap("good", ""),
			annotated(configMap("config", ""), "update-policy", "Sometimes")))
		Expect(expectError[*problem.Error](err)).To(MatchError(ContainSubstring(
			"the annotation capstan.dev/update-policy of ConfigMap config must be one of Once, Always")))
		Expect(configMaps(ctx, namespace)).To(BeEmpty())
	})

	It("can be to adopt nothing", func(ctx SpecContext) {
		kubectlApply(ctx, namespace, configMap("config", "old"))
		_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", configMap("good", ""),
			annotated(configMap("config", "new"), "adoption-policy", "Never")))
		Expect(expectError[*apply.ConflictError](err)).To(MatchError(ContainSubstring(
			"config exists and does not belong to the release, and its annotation capstan.dev/adoption-policy is Never")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(value(ctx, "config")).To(Equal("old"))
	})

	It("can be to update it once", func(ctx SpecContext) {
		kubectlApply(ctx, namespace, configMap("adopted", "old"))

		spec := func(version, value string) release.Spec {
			return specOf(namespace, version, configMap("other", value),
				annotated(configMap("created", value), "update-policy", "Once"),
				annotated(configMap("adopted", value), "update-policy", "Once"))
		}

		mustApply(ctx, engine, spec("1.0.0", "1"))
		Expect(value(ctx, "adopted")).To(Equal("1"))
		run(ctx, "kubectl", "patch", "configmap", "created", "-n", namespace, "-p", `{"data":{"key":"a user's"}}`)
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

		mustApply(ctx, engine, spec("1.1.0", "2"))
		Expect(value(ctx, "created")).To(Equal("a user's"))
		Expect(value(ctx, "adopted")).To(Equal("1"))
		Expect(value(ctx, "other")).To(Equal("2"))

		run(ctx, "kubectl", "delete", "configmap", "created", "-n", namespace)
		Expect(compare(ctx, engine, namespace).Differences).To(ConsistOf(HaveField("Missing", true)))
		mustApply(ctx, engine, spec("1.2.0", "3"))
		Expect(value(ctx, "created")).To(Equal("3"))
	})

	It("can be to orphan it, for another release to adopt", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""),
			annotated(configMap("dropped", ""), "delete-policy", "Orphan"),
			annotated(configMap("last", ""), "delete-policy", "Orphan")))
		result := mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", ""),
			annotated(configMap("last", ""), "delete-policy", "Orphan")))
		Expect(result.With(apply.Left)).To(ConsistOf(HaveField("Object.Name", "dropped")))

		_, err := uninstall(ctx, engine, releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("dropped", "last"))

		for _, orphan := range []string{"dropped", "last"} {
			cm := getConfigMap(ctx, namespace, orphan)
			Expect(cm.Annotations).NotTo(HaveKey(HavePrefix("meta.helm.sh/")))
			Expect(cm.Labels).NotTo(HaveKey("app.kubernetes.io/managed-by"))
		}

		other := specOf(namespace, "1.0.0", configMap("dropped", ""), configMap("last", ""))
		other.Release.Name = "other"
		Expect(mustApply(ctx, engine, other).Adopted()).To(HaveLen(2))
	})

	It("can be to orphan it and adopt nothing, which the release can undo", func(ctx SpecContext) {
		kept := func(value string) string {
			return annotated(configMap("kept", value), "delete-policy", "Orphan, capstan.dev/adoption-policy: Never")
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), kept("1")))
		mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", "")))
		Expect(getConfigMap(ctx, namespace, "kept").Annotations).To(
			HaveKeyWithValue(v1alpha2.OrphanedByAnnotation, releaseIn(namespace).String()))

		other := specOf(namespace, "1.0.0", kept("2"))
		other.Release.Name = "other"
		_, err := applySpec(ctx, engine, other)
		Expect(expectError[*apply.ConflictError](err)).To(MatchError(ContainSubstring("does not belong to the release")))

		mustApply(ctx, engine, specOf(namespace, "1.2.0", configMap("config", ""), kept("3")))
		Expect(value(ctx, "kept")).To(Equal("3"))
		Expect(getConfigMap(ctx, namespace, "kept").Annotations).To(HaveKey("meta.helm.sh/release-name"))
	})

	It("can be to create its namespace, which stays", func(ctx SpecContext) {
		elsewhere, later := namespace+"-elsewhere", namespace+"-later"
		in := func(object, namespace string) string {
			return strings.Replace(object, "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
		}
		creating := func(object string) string { return annotated(object, "missing-namespace-policy", "Create") }
		exists := func(name string) bool {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false
			}

			Expect(err).NotTo(HaveOccurred())

			return true
		}

		refused := in(configMap("config", ""), elsewhere)
		message := "ConfigMap " + elsewhere + `/config: namespaces "` + elsewhere + `" not found; create namespace ` +
			elsewhere + ", or set spec.policies.missingNamespaces: Create"

		By("refusing it by default, before and after something is installed")

		_, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", refused))
		Expect(expectError[*apply.DryRunError](err)).To(
			MatchError("the API server would refuse " + strings.Replace(message, ": ", ", so nothing was changed: ", 1)))
		mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", "")))
		_, err = applySpec(ctx, engine, specOf(namespace, "1.2.0", configMap("config", ""), refused))
		Expect(expectError[*apply.DryRunError](err)).To(
			MatchError("the API server would refuse " + strings.Replace(message, ": ", ", so nothing was changed: ", 1)))
		Expect(exists(elsewhere)).To(BeFalse())

		By("creating it once for all objects of an upgrade, and for a later wave")

		wave := strings.Replace(creating(in(configMap("last", ""), later)),
			"annotations: {", `annotations: {capstan.dev/apply-order: "1", `, 1)
		spec := specOf(namespace, "1.3.0", configMap("config", ""), creating(in(configMap("one", ""), elsewhere)),
			creating(in(configMap("two", ""), elsewhere)), creating(in(configMap("three", ""), elsewhere)), wave)

		grantConfigMaps(ctx, namespace, "*")

		limited := newEngine("limited", func(c *rest.Config) { c.Impersonate.UserName = namespace })

		_, err = applySpec(ctx, limited, spec)
		Expect(err).To(MatchError(And(
			HavePrefix("the API server would refuse ConfigMap "+elsewhere), ContainSubstring("so nothing was changed"),
			ContainSubstring(`cannot create resource "namespaces"`), ContainSubstring("grant that permission"))))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))

		mustApply(ctx, engine, spec)
		Expect(configMaps(ctx, elsewhere)).To(ConsistOf("one", "two", "three"))
		Expect(exists(later)).To(BeFalse())

		revision := newest(ctx, engine, namespace)
		_, err = advanceOnce(ctx, engine, releaseIn(namespace), revision)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, later)).To(ConsistOf("last"))

		By("keeping it when the release is gone")

		_, err = uninstall(ctx, engine, releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(configMaps(ctx, elsewhere)).To(BeEmpty())
		Expect(exists(elsewhere)).To(BeTrue())
	})

	It("can be to recreate it, or not, to change an immutable field", func(ctx SpecContext) {
		balanced := func(policy, class string) string {
			return annotated("apiVersion: v1\nkind: Service\nmetadata:\n  name: balanced\nspec:\n  type: LoadBalancer\n"+
				"  loadBalancerClass: example.org/"+class+"\n  ports: [{port: 443}]\n", "recreate-policy", policy)
		}
		immutable := func(policy, content string) string {
			return annotated(configMap("config", content)+"immutable: true\n", "recreate-policy", policy)
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", balanced("Always", "one"), immutable("Never", "1")))

		result := mustApply(ctx, engine, specOf(namespace, "1.1.0", balanced("Always", "two"), immutable("Never", "1")))
		Expect(result.With(apply.Replaced)).To(ConsistOf(HaveField("Object.Kind", "Service")))

		_, err := applySpec(ctx, engine, specOf(namespace, "1.2.0", immutable("Never", "2")))
		Expect(expectError[*apply.DryRunError](err)).To(MatchError(
			ContainSubstring("its annotation capstan.dev/recreate-policy is Never")))
		Expect(value(ctx, "config")).To(Equal("1"))
	})

	It("never lets a CRD be recreated, which would delete the objects of users", func(ctx SpecContext) {
		definition := strings.Replace(annotated(crd("protected"), "recreate-policy", "Always"),
			"scope: Namespaced", "scope: {{ .Values.scope }}", 1)
		spec := func(version, scope string) release.Spec {
			return newSpec(namespace, chartOf(version, definition), map[string]any{"scope": scope})
		}
		uid := func() string {
			GinkgoHelper()
			return run(ctx, "kubectl", "get", "crd", "protected.release.test", "-o", "jsonpath={.metadata.uid}")
		}

		mustApply(ctx, engine, spec("1.0.0", "Namespaced"))
		run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/protected.release.test")

		elsewhere := newNamespace(ctx)
		kubectlApply(ctx, elsewhere, custom("protected", "of-a-user"))

		before := uid()

		_, err := applySpec(ctx, engine, spec("1.1.0", "Cluster"))
		Expect(expectError[*apply.DryRunError](err)).To(MatchError(And(
			HavePrefix("the API server would refuse CustomResourceDefinition protected.release.test, so nothing was changed: "+
				"spec.scope: "), ContainSubstring("it is not deleted because objects of users would be deleted with "+
				"it, which no policy allows; delete it yourself if that is acceptable"))))

		Expect(uid()).To(Equal(before))
		run(ctx, "kubectl", "get", "protected", "of-a-user", "-n", elsewhere)
	})
})
