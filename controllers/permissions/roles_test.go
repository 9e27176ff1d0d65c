package permissions_test

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/permissions"
)

// parse returns an object as YAML describes it.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())

	return o
}

const (
	clusterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
- {nonResourceURLs: [/metrics], verbs: [get]}
`
	aggregated = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: aggregated}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
`
	role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: tiny}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}
- {apiGroups: [""], resources: [secrets], verbs: [list]}
`
	ownBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: tiny}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
`
	foreignBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: tiny}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
`
)

func TestRoles(t *testing.T) {
	g := NewWithT(t)
	i := newInstallation(withObjects(
		parse(t, clusterRole), parse(t, aggregated), parse(t, role), parse(t, ownBinding), parse(t, foreignBinding)))
	roles, err := i.Roles(types.NamespacedName{Namespace: "tiny", Name: "installer"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(roles.Warnings).To(ConsistOf(
		HavePrefix("ClusterRole aggregated gathers the permissions of other ClusterRoles"),
		HavePrefix("RoleBinding viewer binds ClusterRole view, which is not part of the provider"),
	))
	g.Expect(roles.Objects).To(HaveLen(4))

	const rbac = rbacv1.GroupName

	inCluster := roles.Objects[0].(*rbacv1.ClusterRole)
	g.Expect(inCluster.Name).To(Equal("capstan-tiny-infrastructure-tiny"))
	g.Expect(inCluster.Rules).To(HaveExactElements(
		newRule([]string{"create"}, rbac, "clusterroles"),
		newRule([]string{"get", "patch", "delete"}, rbac, "clusterroles", "aggregated", "manager"),
		newRule([]string{"list"}, "", "nodes"),
		rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		newRule([]string{"escalate"}, rbac, "clusterroles", "aggregated"),
	))

	inTiny := roles.Objects[2].(*rbacv1.Role)
	g.Expect(inTiny.Namespace).To(Equal("tiny"))
	g.Expect(inTiny.Rules).To(HaveExactElements(
		rbacv1.PolicyRule{APIGroups: []string{rbac}, Resources: []string{"rolebindings", "roles"}, Verbs: []string{"create"}},
		newRule([]string{"get", "patch", "delete"}, rbac, "rolebindings", "leader", "viewer"),
		newRule([]string{"get", "patch", "delete"}, rbac, "roles", "leader"),
		newRule([]string{"get", "list", "create", "update", "patch", "delete"}, "", "secrets"),
		newRule([]string{"get", "update"}, "coordination.k8s.io", "leases"),
		newRule([]string{"bind"}, rbac, "clusterroles", "view"),
	), "the provider's permission to list Secrets is included in that for Helm's records")

	for n, kind := range map[int]string{1: "ClusterRole", 3: "Role"} {
		binding := map[int]*rbacv1.RoleBinding{1: {}, 3: {}}[n]

		data, err := yaml.Marshal(roles.Objects[n])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.Unmarshal(data, binding)).To(Succeed())
		g.Expect(binding.RoleRef.Kind).To(Equal(kind))
		g.Expect(binding.RoleRef.Name).To(Equal(roles.Objects[n-1].GetName()))
		g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{
			{Kind: "ServiceAccount", Namespace: "tiny", Name: "installer"},
		}))
	}
}

// newRule returns a rule for one resource.
func newRule(verbs []string, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs,
	}
}

func TestRolesForManagedTypes(t *testing.T) {
	g := NewWithT(t)
	i := newInstallation(func(i *permissions.Installation) { i.Managed = []string{"virtualnetworks.network.azure.com"} })
	roles, err := i.Roles(types.NamespacedName{Namespace: "tiny", Name: "installer"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(roles.Objects[0].(*rbacv1.ClusterRole).Rules).To(HaveExactElements(
		newRule([]string{"list"}, "network.azure.com", "virtualnetworks")))
	g.Expect(i.Needed()).NotTo(ContainElement(HaveField("Resource.Group", "network.azure.com")),
		"the provider can be installed without that permission")
}

func TestRolesForAnotherCluster(t *testing.T) {
	g := NewWithT(t)
	i := newInstallation(func(i *permissions.Installation) {
		i.Remote = true
		i.Provider.GetSpec().SecretName = "variables"
	})
	roles, err := i.Roles(types.NamespacedName{Namespace: "tiny", Name: "installer"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(roles.Warnings).To(ConsistOf("these roles are for the other cluster; in the cluster of the resource, " +
		"the account needs get secrets variables in namespace tiny"))
}
