package attack

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// identityAttempts pretend to be another user, or name what belongs to others.
var identityAttempts = []attempt{
	{"A provider of the victim's name, deleted again with every annotation that forces", func(a *arena) string {
		a.untouched()

		s := small{tenant, "steady", "v1.0.1", ""}
		p := s.by("installer")
		p.Annotations = forcing

		return a.deleted(p, s.configMap())
	}},
	{"A second CoreProvider, which all other providers would wait for", func(a *arena) string {
		p := &v1alpha2.CoreProvider{ObjectMeta: named(tenant, v1alpha2.CoreProviderName)}
		p.Spec = a.small("").by("installer").Spec
		answer := a.attempted(p, a.small("").configMap())

		for i := range 3 {
			a.Expect(a.lookAgain(steady.resource(), fmt.Sprint(a.name, i))).To(BeEmpty(),
				"the victim's provider waits for the tenant's core")
		}

		a.Expect(a.tenant.Delete(a.ctx, p)).To(Succeed())
		a.Expect(a.removal(p)).To(Equal(gone))

		return answer + "; deleted again"
	}},
	{"ServiceAccount names with a line break, a colon and a path", func(a *arena) string {
		a.neverBound()

		var answers []string

		for i, name := range []string{
			"limited\r\nImpersonate-Group: system:masters", "x:" + victim + ":limited", "../" + victim + "/limited", " ",
		} {
			s := small{tenant, fmt.Sprintf("%s-%d", a.name, i), "v1.0.0", a.adminBinding()}
			a.create(s.configMap())

			p := s.by(name)
			if err := a.tenant.Create(a.ctx, p); err != nil {
				answers = append(answers, err.Error())
				continue
			}

			answers = append(answers, a.outcome(p))
		}

		return strings.Join(answers, " | ")
	}},
	{"A ClusterRoleBinding among the components", func(a *arena) string {
		a.neverBound()
		return a.attempted(a.small("").by("installer"), a.small(a.adminBinding()).configMap())
	}},
	{"A patch that turns a ConfigMap into a ClusterRoleBinding", func(a *arena) string {
		a.neverBound()
		p := a.small("").by("installer")
		p.Spec.ManifestPatches = []string{"kind: ConfigMap\nmetadata: {name: " + a.name + "}\ndata: null\n" +
			"apiVersion: v1\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"}
		p.Spec.Patches = nil

		return a.attempted(p, a.small("").configMap())
	}},
	{"An object of another namespace among the components", func(a *arena) string {
		a.untouched()
		return a.attempted(a.small("").by("installer"), a.small("---\n"+note("steady", victim, "changed")).configMap())
	}},
	{"The victim's CustomResourceDefinition with a conversion webhook of the tenant, allowed by annotation",
		func(a *arena) string {
			a.untouched()
			p := a.small("").by("definer")
			p.Annotations = forcing

			return a.attempted(p, a.small(takenOver).configMap())
		}},
	{"The annotation that deletes the namespace, by an account that may not", func(a *arena) string {
		room := a.room()
		a.never("the namespace is gone", func(ctx context.Context) bool {
			ns := &corev1.Namespace{}
			a.Expect(client.IgnoreNotFound(a.admin.Get(ctx, client.ObjectKey{Name: room}, ns))).To(Succeed())

			return ns.UID == "" || ns.DeletionTimestamp != nil
		})

		s := small{room, a.name, "v1.0.0", ""}
		p := s.resource()
		p.Annotations = forcing

		return a.deleted(p, s.configMap())
	}},
}

// forcing are the annotations that make the operator do what it refuses otherwise.
var forcing = map[string]string{
	v1alpha2.AllowUnsafeCRDAnnotation: "steadies.infrastructure.cluster.x-k8s.io@v1.0.0," +
		"steadies.infrastructure.cluster.x-k8s.io@v1.0.1",
	v1alpha2.AdoptCRDAnnotation:        "infrastructure-steady",
	v1alpha2.DeleteInUseAnnotation:     "true",
	v1alpha2.DeleteCRDsAnnotation:      "true",
	v1alpha2.DeleteNamespaceAnnotation: "true",
}

// takenOver is the victim's CustomResourceDefinition as the attacker wants it.
const takenOver = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: steadies.infrastructure.cluster.x-k8s.io
  annotations: {capstan.dev/adopt: infrastructure-x}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Steady, listKind: SteadyList, plural: steadies, singular: steady}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: tenant, name: evil, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// lookAgain requests a look at a provider and returns why it is not ready; empty if it is.
func (a *arena) lookAgain(p v1alpha2.Provider, request string) string {
	a.Helper()

	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha2.ReconcileRequestAnnotation, request)
	a.Expect(a.admin.Patch(a.ctx, p, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	a.Eventually(func(g Gomega) {
		g.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(p.GetStatus().LastHandledReconcileAt).To(Equal(request))
	}).Should(Succeed())

	if conditions.IsReady(p) {
		return ""
	}

	return readyReason(p)
}

// room creates another namespace in which the tenant's user may write the same as in its own, and its
// default account may read Secrets and ConfigMaps. It returns its name.
func (a *arena) room() string {
	a.Helper()

	return a.roomNamed("room-" + a.name)
}

// roomNamed is room, for attempts that need several.
func (a *arena) roomNamed(room string) string {
	a.Helper()

	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: tenantUser}

	a.Expect(a.admin.Create(a.ctx, &corev1.Namespace{ObjectMeta: named("", room)})).To(Succeed())
	a.Expect(a.admin.Create(a.ctx, &corev1.ServiceAccount{ObjectMeta: named(room, "limited")})).To(Succeed())
	a.bind(a.T, room, "attack-writer-"+tenant, user)
	a.bind(a.T, room, "attack-writer-"+tenant, account(room, "limited"))
	a.bind(a.T, room, operatorNamespace+"-edit", user)

	// The API server learns of bindings by a watch.
	a.Eventually(func() bool {
		return a.allows(a.T, tenantUser, authorizationv1.ResourceAttributes{
			Namespace: room, Verb: "create", Group: v1alpha2.GroupVersion.Group, Resource: "infrastructureproviders",
		})
	}).Should(BeTrue())

	return room
}
