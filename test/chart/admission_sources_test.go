package chart

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("For what a provider is installed from, the admission policies", Ordered, func() {
	refusedVersions := MatchError(ContainSubstring("only users who may update that resource may change its versions"))

	// labeled returns a ConfigMap that is a version of the provider, unless its labels do not match.
	labeled := func(labels ...string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, GenerateName: "version-", Labels: map[string]string{v1alpha2.ConfigMapVersionLabel: "v1.0.0"},
		}}
		for i := 0; i < len(labels); i += 2 {
			cm.Labels[labels[i]] = labels[i+1]
		}

		return cm
	}

	create := func(ctx context.Context, user string, o client.Object) error {
		return asUser(user).Create(ctx, o, client.DryRunAll)
	}

	BeforeAll(func(ctx SpecContext) {
		installPolicies(ctx)

		for name, selector := range map[string]*metav1.LabelSelector{
			"labels": {MatchLabels: map[string]string{"provider": "labels", "channel": "stable"}},
			"expressions": {MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "set", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}},
				{Key: "other", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"c"}},
				{Key: "there", Operator: metav1.LabelSelectorOpExists},
				{Key: "gone", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
			"elsewhere": nil,
		} {
			p := newProvider(v1alpha2.InfrastructureProviderType, name)
			if selector != nil {
				p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{Selector: selector}
			}

			Expect(admin.Create(ctx, p)).To(Succeed())
		}

		Eventually(create).WithArguments(ctx, writer, labeled("provider", "labels", "channel", "stable")).
			Should(refusedVersions)
	})
	AfterAll(removeAll)

	It("refuse the versions that a resource selects of a user who may write ConfigMaps and Secrets only",
		func(ctx SpecContext) {
			for _, version := range []*corev1.ConfigMap{
				labeled("provider", "labels", "channel", "stable", "more", "x"),
				labeled("set", "b", "there", ""),
				labeled("set", "a", "there", "x", "other", "d"),
			} {
				Eventually(create).WithArguments(ctx, writer, version).Should(refusedVersions, "%v", version.Labels)
				Expect(create(ctx, editor, version)).To(Succeed())
				Expect(create(ctx, operatorUser, version)).To(Succeed())

				secret := &corev1.Secret{ObjectMeta: *version.ObjectMeta.DeepCopy()}
				Expect(create(ctx, writer, secret)).To(refusedVersions)

				delete(secret.Labels, v1alpha2.ConfigMapVersionLabel)
				Expect(create(ctx, writer, secret)).To(Succeed(), "it may have variables")

				named := version.DeepCopy()
				named.GenerateName, named.Name = "", "v1.0.0"
				delete(named.Labels, v1alpha2.ConfigMapVersionLabel)
				Expect(create(ctx, writer, named)).To(refusedVersions)
			}
		})

	It("accept all that no resource selects", func(ctx SpecContext) {
		for _, version := range []*corev1.ConfigMap{
			labeled("provider", "labels"),
			labeled("provider", "labels", "channel", "edge"),
			labeled("set", "c", "there", ""),
			labeled("set", "a"),
			labeled("set", "a", "there", "", "other", "c"),
			labeled("set", "a", "there", "", "gone", ""),
			labeled("provider.cluster.x-k8s.io/type", "infrastructure", "provider.cluster.x-k8s.io/name", "elsewhere"),
		} {
			Expect(create(ctx, writer, version)).To(Succeed(), "%v", version.Labels)
		}
	})

	It("refuse to add the labels to another object, and to change or relabel a version", func(ctx SpecContext) {
		own, other := labeled("provider", "labels", "channel", "stable"), labeled("provider", "labels")
		Expect(asUser(editor).Create(ctx, own)).To(Succeed())
		Expect(asUser(writer).Create(ctx, other)).To(Succeed())

		for o, patch := range map[*corev1.ConfigMap]string{
			own: `{"data":{"components":"x"}}`, other: `{"metadata":{"labels":{"channel":"stable"}}}`,
		} {
			change := client.RawPatch(types.MergePatchType, []byte(patch))
			Expect(asUser(writer).Patch(ctx, o, change, client.DryRunAll)).To(refusedVersions)
			Expect(asUser(editor).Patch(ctx, o, change, client.DryRunAll)).To(Succeed())
		}

		drop := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
		Expect(asUser(writer).Patch(ctx, own, drop, client.DryRunAll)).To(refusedVersions)
		Expect(asUser(writer).Delete(ctx, own)).To(Succeed(), "nothing is installed by that")
	})

	It("accept the status of providers of the operator only, whatever a Role allows", func(ctx SpecContext) {
		everything := newUser(ctx, "all-writer",
			rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*", "*/*"}, Verbs: []string{"*"}})
		p := newProvider(v1alpha2.InfrastructureProviderType, "labels")

		for _, patch := range []string{
			`{"status":{"contract":"v1beta2"}}`,
			`{"status":{"history":[{"revision":1,"digest":"v1:x","version":"v1.0.0","status":"deployed"}]}}`,
		} {
			change := client.RawPatch(types.MergePatchType, []byte(patch))
			Expect(asUser(everything).Status().Patch(ctx, p.DeepCopyObject().(client.Object), change)).
				To(MatchError(ContainSubstring("only the operator may write the status of providers, not all-writer")))
		}

		change := client.RawPatch(types.MergePatchType, []byte(`{"status":{"contract":"v1beta2"}}`))
		Expect(asUser(operatorUser).Status().Patch(ctx, p.DeepCopyObject().(client.Object), change)).To(Succeed())
		Expect(admin.Status().Patch(ctx, p, change)).To(Succeed(), "as backup tools do")
	})
})
