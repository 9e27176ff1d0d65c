package attack

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// tenantUser may write ConfigMaps, Secrets and providers in the tenant's namespace.
const tenantUser = "tenant-user"

// accountUser returns the user name of a ServiceAccount of the tenant.
func accountUser(name string) string { return "system:serviceaccount:" + tenant + ":" + name }

// populate creates the namespaces of victim and tenant with their accounts. In all namespaces but the
// tenant's, the account of providers may do everything. The tenant has three: "limited", which is the
// default and may do nothing; "installer", which may do everything in the namespace; and "definer",
// which may write CustomResourceDefinitions, too. One in the operator's namespace may do everything there.
func (w *world) populate(t *testing.T) {
	g := NewWithT(t)

	for _, namespace := range []string{victim, tenant, "cluster-api-system"} {
		limited := &corev1.ServiceAccount{ObjectMeta: named(namespace, "limited")}
		g.Expect(w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: named("", namespace)})).To(Succeed())
		g.Expect(w.admin.Create(t.Context(), limited)).To(Succeed())

		if namespace != tenant {
			w.bind(t, "", "cluster-admin", account(namespace, "limited"))
		}
	}

	g.Expect(w.admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named(operatorNamespace, "installer")})).
		To(Succeed())
	w.grant(t, operatorNamespace, "installer", account(operatorNamespace, "installer"), rule("*", []string{"*"}, "*"))

	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: tenantUser}
	w.grant(t, tenant, "writer", user, rule("", []string{"configmaps", "secrets"}, "*"))
	w.bind(t, tenant, operatorNamespace+"-edit", user)
	w.grant(t, tenant, "reader", user, rule(v1alpha2.GroupVersion.Group, []string{"*"}, "get", "list", "watch"))

	for _, name := range []string{"installer", "definer"} {
		g.Expect(w.admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: named(tenant, name)})).To(Succeed())
		w.grant(t, tenant, name, account(tenant, name), rule("*", []string{"*"}, "*"))
	}

	w.grant(t, "", "definer", account(tenant, "definer"),
		rule(apiextensionsv1.GroupName, []string{"customresourcedefinitions", "customresourcedefinitions/status"}, "*"),
		rule("infrastructure.cluster.x-k8s.io", []string{"*"}, "*"))
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// grant gives a subject permissions in a namespace, or in the cluster if the namespace is empty.
func (w *world) grant(t *testing.T, namespace, name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	g := NewWithT(t)
	name = "attack-" + name + "-" + namespace
	g.Expect(w.admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: named("", name), Rules: rules})).To(Succeed())
	w.bind(t, namespace, name, to)
}

// bind binds a ClusterRole in a namespace, or in the cluster if the namespace is empty.
func (w *world) bind(t *testing.T, namespace, role string, to rbacv1.Subject) {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	m := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%s-%s", role, to.Namespace, to.Name)}

	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: m, RoleRef: ref, Subjects: []rbacv1.Subject{to}}
	if namespace == "" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: m, RoleRef: ref, Subjects: []rbacv1.Subject{to}}
	}

	NewWithT(t).Expect(w.admin.Create(t.Context(), binding)).To(Succeed())
}

// steady is the victim's provider.
var steady = small{namespace: victim, name: "steady", version: "v1.0.0", extra: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: steady-controller-manager, namespace: steady-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: steady}}
  template:
    metadata: {labels: {app: steady}}
    spec: {containers: [{name: manager, image: "registry.example.com/steady:v1.0.0"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: steadies.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Steady, listKind: SteadyList, plural: steadies, singular: steady}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`}

// installVictim installs core and the victim's provider.
func (w *world) installVictim(t *testing.T) {
	g := NewWithT(t)
	core, err := harness.Load(t.Context(), root+"/test/data/providers", harness.Wanted{Label: "cluster-api"})
	g.Expect(err).NotTo(HaveOccurred())
	installed, err := core.Install(t.Context(), w.admin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.admin.Create(t.Context(), steady.configMap())).To(Succeed())

	p := steady.resource()
	g.Expect(w.admin.Create(t.Context(), p)).To(Succeed())
	w.expectReady(t, installed)
	w.expectReady(t, p)

	for _, o := range w.victims() {
		g.Expect(w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
		w.before = append(w.before, o)
	}
}

func (w *world) expectReady(t *testing.T, p v1alpha2.Provider) {
	t.Helper()
	NewWithT(t).Eventually(func() string {
		if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}

		if !conditions.IsReady(p) {
			return "not ready: " + conditions.GetMessage(p, v1alpha2.ReadyCondition)
		}

		return ""
	}).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(BeEmpty())
}

// victims are objects that no attempt may touch.
func (w *world) victims() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: named("", victim)},
		&appsv1.Deployment{ObjectMeta: named(victim, "steady-controller-manager")},
		&corev1.ConfigMap{ObjectMeta: named(victim, "steady")},
		&corev1.Secret{ObjectMeta: named(victim, "sh.helm.release.v1.infrastructure-steady.v1")},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", "steadies.infrastructure.cluster.x-k8s.io")},
	}
}

// expectVictimUnchanged compares the victim's objects with those before the attempts.
func (w *world) expectVictimUnchanged(t *testing.T) {
	g := NewWithT(t)

	for _, o := range w.before {
		now := o.DeepCopyObject().(client.Object)
		g.Expect(w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), now)).To(Succeed())
		g.Expect(fingerprint(now)).To(Equal(fingerprint(o)), "%T %s", o, o.GetName())
	}

	w.expectReady(t, steady.resource())
}

// untouched declares that the victim's objects must not change.
func (a *arena) untouched() {
	a.never("an object of the victim has changed", func(ctx context.Context) bool {
		for _, o := range a.before {
			now := o.DeepCopyObject().(client.Object)
			if a.admin.Get(ctx, client.ObjectKeyFromObject(o), now) != nil || fingerprint(now) != fingerprint(o) {
				return true
			}
		}

		return false
	})
}

// fingerprint identifies an object and its content, without its status.
func fingerprint(o client.Object) string {
	return fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), o.GetDeletionTimestamp(), content(o))
}

// content returns what has no generation.
func content(o client.Object) any {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return o.Data
	case *corev1.Secret:
		return len(o.Data["release"])
	}

	return nil
}
