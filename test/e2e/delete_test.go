package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("Deleting a provider", Ordered, everyKubernetes, ContinueOnFailure, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// installedIn installs a provider that has a ClusterRole and other components in addition to those
	// of tiny.
	installedIn := func(ctx context.Context, namespace, name, components string) (tiny, *v1alpha2.InfrastructureProvider) {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		t.components += fmt.Sprintf(
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s-role}\n---\n%s",
			name,
			components,
		)
		source, p := t.configMap(), t.resource()
		source.Name = name
		source.Labels[v1alpha2.ConfigMapVersionLabel] = t.version
		source.Namespace, p.Namespace = namespace, namespace
		Expect(
			client.IgnoreAlreadyExists(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})),
		).To(Succeed())
		Expect(w.client.Create(ctx, source)).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		return t, p
	}
	installed := func(ctx context.Context, name string) (tiny, *v1alpha2.InfrastructureProvider) {
		GinkgoHelper()
		return installedIn(ctx, name, name, "")
	}
	// used creates objects of the provider's kind.
	used := func(ctx context.Context, t tiny, names ...string) []client.Object {
		GinkgoHelper()

		var objects []client.Object

		for _, name := range names {
			o := t.object("v1", name)
			Expect(w.client.Create(ctx, o)).To(Succeed())
			objects = append(objects, o)
		}

		return objects
	}
	remove := func(ctx context.Context, objects ...client.Object) {
		GinkgoHelper()

		for _, o := range objects {
			Expect(w.client.Delete(ctx, o)).To(Succeed())
		}
	}
	annotate := func(ctx context.Context, p v1alpha2.Provider, annotations ...string) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) {
			for _, a := range annotations {
				metav1.SetMetaDataAnnotation(&p.(*v1alpha2.InfrastructureProvider).ObjectMeta, a, "true")
			}
		})
	}
	blocked := func(ctx context.Context, p v1alpha2.Provider, parts ...string) {
		GinkgoHelper()
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletionBlockedReason, parts...))
	}
	exists := func(ctx context.Context, o client.Object, name client.ObjectKey) bool {
		GinkgoHelper()

		err := w.client.Get(ctx, name, o)
		Expect(client.IgnoreNotFound(err)).To(Succeed())

		return err == nil
	}
	goesAway := func(ctx context.Context, p v1alpha2.Provider) {
		GinkgoHelper()
		Eventually(gone(ctx, w, p)).Should(BeTrue())
		Expect(exists(ctx, &rbacv1.ClusterRole{}, client.ObjectKey{Name: p.GetName() + "-role"})).To(
			BeFalse(), "a ClusterRole was left behind")
		Expect(w.helm(ctx, "helm", "list", "-A", "--all")).NotTo(ContainElement(HaveField("Name", v1alpha2.Label(p))))
	}

	It("waits for objects of its kinds that are not its own, and keeps its CRDs", func(ctx SpecContext) {
		t, p := installedIn(
			ctx,
			"in-use",
			"in-use",
			"apiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: Tinyinuse\n"+
				"metadata: {name: came-along, namespace: in-use-system}\n",
		)
		objects := used(ctx, t, "a", "b", "c")
		remove(ctx, p)
		blocked(
			ctx,
			p,
			"3 objects still exist: 3 "+t.crd()+" (e.g. default/a, default/b); delete them first",
			v1alpha2.DeleteInUseAnnotation,
		)
		Expect(
			exists(ctx, &appsv1.Deployment{}, client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"}),
		).To(BeTrue())

		remove(ctx, objects[:2]...)
		blocked(ctx, p, "1 object still exists")
		remove(ctx, objects[2])
		goesAway(ctx, p)
		Expect(exists(ctx, &apiextensionsv1.CustomResourceDefinition{}, client.ObjectKey{Name: t.crd()})).To(BeTrue())
	})

	It("waits for objects of additional types, whose CRDs are not its own", func(ctx SpecContext) {
		_, p := installed(ctx, "additional")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().AdditionalManagedTypes = []v1alpha2.ManagedType{{Group: "cert-manager.io", Kind: "ClusterIssuer"}}
		})

		issuer := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer",
			"metadata": map[string]any{"name": "mine"},
			"spec":     map[string]any{"selfSigned": map[string]any{}},
		}}
		Expect(w.client.Create(ctx, issuer)).To(Succeed())
		remove(ctx, p)
		blocked(ctx, p, "1 object still exists: 1 clusterissuers.cert-manager.io (e.g. mine); delete them first")
		remove(ctx, issuer)
		goesAway(ctx, p)
	})

	It("keeps its manager until its own objects are gone", func(ctx SpecContext) {
		t, p := installedIn(
			ctx,
			"held",
			"held",
			"apiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: Tinyheld\n"+
				"metadata: {name: came-along, namespace: held-system, finalizers: [example.com/manager]}\n",
		)
		remove(ctx, p)
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletingReason, "being removed: "+
			"Tinyheld held/came-along is being deleted, but its finalizers hold it: example.com/manager",
			v1alpha2.DeleteInUseAnnotation))
		Expect(
			exists(ctx, &appsv1.Deployment{}, client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"}),
		).To(BeTrue())

		own := t.inVersion("v1")
		Expect(exists(ctx, own, client.ObjectKey{Namespace: "held", Name: "came-along"})).To(BeTrue())
		own.SetFinalizers(nil)
		Expect(w.client.Update(ctx, own)).To(Succeed(), "as the manager does")
		goesAway(ctx, p)
	})

	It("does not wait for its own objects if an annotation allows it", func(ctx SpecContext) {
		t, p := installedIn(
			ctx,
			"unheld",
			"unheld",
			"apiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: Tinyunheld\n"+
				"metadata: {name: came-along, namespace: unheld-system, finalizers: [example.com/manager]}\n",
		)
		annotate(ctx, p, v1alpha2.DeleteInUseAnnotation)
		remove(ctx, p)
		goesAway(ctx, p)
		Expect(exists(ctx, t.inVersion("v1"), client.ObjectKey{Namespace: "unheld", Name: "came-along"})).To(BeTrue())
	})

	It("deletes CRDs on request, including orphaned ones, when no objects are left", func(ctx SpecContext) {
		t, p := installed(ctx, "with-crds")
		orphan := newTiny("with-crds-orphan", "v0.9.0")
		definition := orphan.definition(map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-with-crds"})
		definition.Annotations = map[string]string{v1alpha2.Prefix + "/crd-digest": "0"}
		Expect(w.client.Create(ctx, definition)).To(Succeed())
		// A manager may create CRDs with the label of its provider at run time.
		created := newTiny("with-crds-created", "v1.0.0")
		Expect(w.client.Create(ctx, created.definition(definition.Labels))).To(Succeed())
		objects := used(ctx, t, "a")
		annotate(ctx, p, v1alpha2.DeleteInUseAnnotation, v1alpha2.DeleteCRDsAnnotation)
		remove(ctx, p)
		blocked(ctx, p, "CustomResourceDefinitions are not deleted: 1 object still exists", v1alpha2.DeleteCRDsAnnotation)
		Expect(exists(ctx, t.object("v1", "a"), client.ObjectKey{Namespace: "default", Name: "a"})).To(BeTrue())

		remove(ctx, objects...)
		goesAway(ctx, p)

		for name, kept := range map[string]bool{t.crd(): false, orphan.crd(): false, created.crd(): true} {
			Expect(exists(ctx, &apiextensionsv1.CustomResourceDefinition{}, client.ObjectKey{Name: name})).To(Equal(kept), name)
		}
	})

	It("deletes the namespace on request, with the last provider in it", func(ctx SpecContext) {
		_, first := installed(ctx, "shared")
		_, second := installedIn(ctx, "shared", "shared-too", "")
		_, third := installedIn(ctx, "shared", "shared-three", "")
		annotate(ctx, first, v1alpha2.DeleteNamespaceAnnotation)
		annotate(ctx, second, v1alpha2.DeleteNamespaceAnnotation)
		remove(ctx, first)
		blocked(
			ctx,
			first,
			"namespace shared is not deleted",
			"InfrastructureProvider shared/shared-three, InfrastructureProvider shared/shared-too",
		)
		remove(ctx, third)
		goesAway(ctx, third)
		remove(ctx, second)
		goesAway(ctx, first)
		goesAway(ctx, second)
		Eventually(func() bool { return exists(ctx, &corev1.Namespace{}, client.ObjectKey{Name: "shared"}) }).Should(
			BeFalse())
	})

	It("leaves nothing behind when the namespace is deleted, even in use", func(ctx SpecContext) {
		t, p := installed(ctx, "vanishing")
		used(ctx, t, "left")
		remove(ctx, t.namespace())
		goesAway(ctx, p)
		Eventually(func() bool { return exists(ctx, &corev1.Namespace{}, client.ObjectKey{Name: t.name}) }).Should(BeFalse())
	})

	// connected installs a provider with a variable from a Secret, and objects outside of its namespace that others feel.
	connected := func(ctx context.Context, name string) (tiny, *v1alpha2.InfrastructureProvider, []client.Object) {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		t.components += fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-role}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s-role}
subjects: [{kind: ServiceAccount, name: %[1]s-manager, namespace: %[1]s-system}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s-webhooks}
webhooks:
- name: validation.%[1]s.example.com
  clientConfig: {service: {name: %[1]s-webhook, namespace: %[1]s-system}}
  rules: [{apiGroups: [infrastructure.cluster.x-k8s.io], apiVersions: [v1], operations: [CREATE], resources: [%[2]s]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`, name, t.plural())

		p := t.resource()
		p.Spec.ConfigSecret = &v1alpha2.SecretReference{Name: "variables"}

		for _, o := range []client.Object{
			t.namespace(), t.configMap(), p,
			&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "variables"},
				Data:       map[string][]byte{"TINY_LEVEL": []byte("debug")},
			},
		} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		global := []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-role"}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-binding"}},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name + "-webhooks"}},
		}
		for _, o := range global {
			Expect(exists(ctx, o, client.ObjectKeyFromObject(o))).To(BeTrue())
		}

		return t, p, global
	}
	noneExists := func(ctx context.Context, objects []client.Object) {
		GinkgoHelper()

		for _, o := range objects {
			Expect(exists(ctx, o, client.ObjectKeyFromObject(o))).To(BeFalse(), "%T %s", o, o.GetName())
		}
	}

	It("leaves nothing behind when the namespace is deleted with a Secret that the provider needs",
		func(ctx SpecContext) {
			t, p, global := connected(ctx, "vanishing-too")
			remove(ctx, t.namespace())
			goesAway(ctx, p)
			noneExists(ctx, global)
			Eventually(gone(ctx, w, t.namespace())).Should(BeTrue())
		})

	It("leaves nothing behind when all Secrets of the namespace are gone, although it cannot be changed any more",
		func(ctx SpecContext) {
			t, p, global := connected(ctx, "secretless")
			Expect(w.client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(t.name))).To(Succeed())
			Eventually(w.read(ctx, p)).Should(And(
				notBeReady(v1alpha2.SecretNotFoundReason),
				haveCondition(v1alpha2.ProviderInstalledCondition, "False", v1alpha2.UninstalledReason, "no records"),
			))

			remove(ctx, p)
			goesAway(ctx, p)
			noneExists(ctx, append(global, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: t.name + "-controller-manager"},
			}))
		})

	It("leaves nothing behind after helm uninstall", func(ctx SpecContext) {
		t, p, global := connected(ctx, "helm-uninstalled")
		w.run(ctx, "helm", "uninstall", v1alpha2.Label(p), "-n", t.name)
		Eventually(w.read(ctx, p)).Should(
			haveCondition(v1alpha2.ProviderInstalledCondition, "False", v1alpha2.ExternalChangeReason))

		remove(ctx, p)
		goesAway(ctx, p)
		noneExists(ctx, global)
	})

	It("removes the objects of a revision whose record was deleted, with the next change", func(ctx SpecContext) {
		t, p := installed(ctx, "forgotten")
		newer := newTiny(t.name, "v1.1.0")
		newer.components += "---\napiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: forgotten, namespace: forgotten-system}\n" +
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: forgotten-newer}\n"
		Expect(w.client.Create(ctx, newer.configMap())).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = newer.version })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		Expect(w.operator.Stop()).To(Succeed())
		remove(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "sh.helm.release.v1.infrastructure-forgotten.v2"},
		})
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = t.version })
		w.start()
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		for _, o := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "forgotten"}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "forgotten-newer"}},
		} {
			Eventually(gone(ctx, w, o)).Should(BeTrue(), "%T", o)
		}

		Expect(exists(ctx, &rbacv1.ClusterRole{}, client.ObjectKey{Name: "forgotten-role"})).To(BeTrue())
		remove(ctx, p)
		goesAway(ctx, p)
	})

	It("is adopted again when the release's Secrets are missing", func(ctx SpecContext) {
		t, p := installed(ctx, "records-lost")
		manager := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"}
		Expect(w.client.Get(ctx, key, manager)).To(Succeed())
		before := manager.ObjectMeta

		Expect(
			w.client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(t.name), client.MatchingLabels{"owner": "helm"}),
		).To(Succeed())
		Eventually(func() []helmRelease { return w.helm(ctx, "helm", "list", "-n", t.name) }, "10s", helmInterval).
			Should(ConsistOf(HaveField("Status", "deployed")))
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		Expect(w.client.Get(ctx, key, manager)).To(Succeed())
		Expect(manager.UID).To(Equal(before.UID))
		Expect(manager.Generation).To(Equal(before.Generation), "its pods keep running")
	})

	It("removes all objects when the release's Secrets are missing, once it is no longer used", func(ctx SpecContext) {
		t, p := installed(ctx, "recordless")
		objects := used(ctx, t, "kept")

		Expect(w.operator.Stop()).To(Succeed())
		remove(ctx, p)
		Expect(
			w.client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(t.name), client.MatchingLabels{"owner": "helm"}),
		).To(Succeed())
		w.start()
		blocked(ctx, p, "1 object still exists", v1alpha2.DeleteInUseAnnotation)
		Expect(exists(ctx, &appsv1.Deployment{},
			client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"})).To(BeTrue())
		remove(ctx, objects...)
		goesAway(ctx, p)
	})

	It("removes all objects when the release's Secrets are invalid", func(ctx SpecContext) {
		t, p := installed(ctx, "unreadable")

		Expect(w.operator.Stop()).To(Succeed())

		records := &corev1.SecretList{}
		Expect(w.client.List(ctx, records, client.InNamespace(t.name), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(records.Items).NotTo(BeEmpty())

		for i := range records.Items {
			records.Items[i].Data["release"] = []byte("nonsense")
			Expect(w.client.Update(ctx, &records.Items[i])).To(Succeed())
		}

		remove(ctx, p)
		w.start()
		goesAway(ctx, p)
		Expect(w.client.List(ctx, records, client.InNamespace(t.name), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(records.Items).To(BeEmpty())
	})

	It("waits for a helm command, and names the one that completes it if it was interrupted",
		func(ctx SpecContext) {
			_, p := installed(ctx, "interrupted")
			w.offer(ctx, newTiny("interrupted", "v1.1.0"))
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

			rollback := []string{"rollback", "infrastructure-interrupted", "-n", "interrupted"}
			interrupted := w.bed.Command(ctx, "helm", append(rollback, "--wait")...)
			Expect(interrupted.Start()).To(Succeed())
			Eventually(func() []helmRelease {
				return w.helm(ctx, "helm", "history", "infrastructure-interrupted", "-n", "interrupted")
			}).Should(ContainElement(HaveField("Status", "pending-rollback")))
			Expect(interrupted.Process.Kill()).To(Succeed())
			Expect(interrupted.Wait()).NotTo(Succeed())

			remove(ctx, p)
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletingReason,
				"revision 3 is pending-rollback", "helm "+strings.Join(rollback, " ")))
			w.run(ctx, "helm", rollback...)
			goesAway(ctx, p)
		})

	It("reports that a conversion webhook is down, and continues if an annotation allows it", func(ctx SpecContext) {
		t, p := installed(ctx, "converted")
		used(ctx, t, "old")

		// The operator would restore the CRD.
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftOff}
		})
		breakConversion(ctx, w, t)
		DeferCleanup(repairConversion, w, t)
		remove(ctx, p)
		blocked(
			ctx,
			p,
			"it is unknown whether there are "+t.crd(),
			`service "missing" not found`,
			"repair the webhook's server",
			v1alpha2.DeleteInUseAnnotation,
		)
		annotate(ctx, p, v1alpha2.DeleteInUseAnnotation)
		goesAway(ctx, p)
	})

	It("succeeds without its kind, and with finalizers of others on its objects", func(ctx SpecContext) {
		t, p := installed(ctx, "kindless")
		deployment := &appsv1.Deployment{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"}, deployment)).To(
			Succeed())

		hold := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/held"]}}`))
		Expect(w.client.Patch(ctx, deployment, hold)).To(Succeed())
		remove(ctx, t.definition(nil))
		remove(ctx, p)
		goesAway(ctx, p)
		Expect(exists(ctx, deployment, client.ObjectKeyFromObject(deployment))).To(BeTrue())
		Expect(deployment.DeletionTimestamp.IsZero()).To(BeFalse())

		free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		Expect(w.client.Patch(ctx, deployment, free)).To(Succeed())
	})

	It("reports the webhook that rejects a deletion, and continues without it", func(ctx SpecContext) {
		t, p := installed(ctx, "guarded")
		guard := &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "guard"},
			Webhooks: []admissionv1.ValidatingWebhook{
				{
					Name:                    "guard.example.com",
					FailurePolicy:           new(admissionv1.Fail),
					SideEffects:             new(admissionv1.SideEffectClassNone),
					AdmissionReviewVersions: []string{"v1"},
					NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: t.name}},
					ClientConfig: admissionv1.WebhookClientConfig{
						Service: &admissionv1.ServiceReference{Namespace: "default", Name: "missing"},
					},
					Rules: []admissionv1.RuleWithOperations{
						{
							Operations: []admissionv1.OperationType{admissionv1.Delete},
							Rule: admissionv1.Rule{
								APIGroups:   []string{"apps"},
								APIVersions: []string{"*"},
								Resources:   []string{"deployments"},
							},
						},
					},
				},
			},
		}
		Expect(w.client.Create(ctx, guard)).To(Succeed())

		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: t.name + "-controller-manager"},
		}

		Eventually(func() error { return w.client.Delete(ctx, deployment, client.DryRunAll) }).Should(
			MatchError(ContainSubstring("guard.example.com")))
		remove(ctx, p)
		blocked(
			ctx,
			p,
			"Deployment guarded/guarded-controller-manager could not be deleted",
			"guard.example.com",
			"repair the webhook's server",
		)
		remove(ctx, guard)
		goesAway(ctx, p)
	})
})

// breakConversion stores the provider's objects in another version from now on, and lets a webhook that
// does not exist convert those that there are.
func breakConversion(ctx context.Context, w *world, t tiny) {
	GinkgoHelper()

	w.editDefinition(ctx, t.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		newer := crd.Spec.Versions[0].DeepCopy()
		crd.Spec.Versions[0].Storage = false
		newer.Name = "v2"
		crd.Spec.Versions = append(crd.Spec.Versions, *newer)
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "missing"},
				},
			},
		}
	})
	Eventually(func() error {
		return w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "old"}, t.inVersion("v2"))
	}).
		Should(MatchError(ContainSubstring("conversion webhook")))
}

// repairConversion undoes breakConversion: a removal that looks at all kinds would find this one.
func repairConversion(ctx context.Context, w *world, t tiny) {
	GinkgoHelper()

	w.editDefinition(ctx, t.crd(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
}

// definition returns the provider's CRD.
func (t tiny) definition(labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(t.kind())

	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: t.crd(), Labels: labels},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "infrastructure.cluster.x-k8s.io",
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind:     t.kind(),
				ListKind: t.kind() + "List",
				Plural:   singular + "s",
				Singular: singular,
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{
					Name:    "v1",
					Served:  true,
					Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
					},
				},
			},
		},
	}
}
