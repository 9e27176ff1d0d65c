package permissions

import (
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Roles are what grants an account the permissions for an installation.
type Roles struct {
	// Objects are a ClusterRole, a Role for each namespace, and their bindings.
	Objects []client.Object
	// Warnings name what the account could also do with them.
	Warnings []string

	// rules are those of the Roles by namespace, and of the ClusterRole for the empty one.
	rules map[string][]rbacv1.PolicyRule
}

// Roles returns the least that an account needs for an installation: the permissions of the table, and
// those that the provider's own Roles grant, because the API server lets no account grant more than
// it has.
func (i Installation) Roles(account types.NamespacedName) (*Roles, error) {
	needed, err := i.Needed()
	if err != nil {
		return nil, err
	}

	later, err := i.collect(afterwards)
	if err != nil {
		return nil, err
	}

	needed = append(needed, later...)

	read, err := i.Read()
	if err != nil {
		return nil, err
	}

	if !i.Remote {
		needed = append(needed, read...)
	}

	r := &Roles{rules: map[string][]rbacv1.PolicyRule{}}
	for _, p := range needed {
		r.add(p.Namespace, p.rule())
	}

	if err := r.addGrants(i.Objects); err != nil {
		return nil, err
	}

	if i.Remote {
		for _, p := range read {
			r.warn("these roles are for the other cluster; in the cluster of the resource, the account needs %s", p)
		}
	}

	label := v1alpha2.Label(i.Provider)
	for _, namespace := range slices.Sorted(maps.Keys(r.rules)) {
		name := "capstan-" + label
		if namespace == "" {
			name = "capstan-" + i.Provider.GetNamespace() + "-" + label
		}

		r.Objects = append(r.Objects, bound(types.NamespacedName{Namespace: namespace, Name: name},
			account, joined(r.rules[namespace]))...)
	}

	return r, nil
}

// add adds a rule for a namespace, or for the cluster.
func (r *Roles) add(namespace string, rule rbacv1.PolicyRule) {
	r.rules[namespace] = append(r.rules[namespace], rule)
}

// addGrants adds what the account must have to create the Roles and bindings among objects.
func (r *Roles) addGrants(objects []*unstructured.Unstructured) error {
	included := map[roleKey]bool{}

	for _, o := range objects {
		kind := o.GroupVersionKind()
		if kind.Group != rbacv1.GroupName || kind.Kind != "Role" && kind.Kind != "ClusterRole" {
			continue
		}

		role := &rbacv1.ClusterRole{} // a Role has a part of its fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, o.GetName(), err)
		}

		key := roleKey{kind: kind.Kind, name: o.GetName()}
		if kind.Kind == "Role" {
			key.namespace = o.GetNamespace()
		}

		if role.AggregationRule != nil {
			r.warn("ClusterRole %s gathers the permissions of other ClusterRoles, so the account needs to escalate it: "+
				"with that, it can give itself any permission", role.Name)
			r.add("", onRole("escalate", "clusterroles", role.Name))

			continue
		}

		included[key] = true

		for _, rule := range role.Rules {
			r.add(key.namespace, rule)
		}
	}

	return r.addBindings(objects, included)
}

// roleKey identifies a Role or, without a namespace, a ClusterRole.
type roleKey struct{ kind, namespace, name string }

// addBindings adds the permission to bind roles that are not among the objects, whose permissions the
// account does not have.
func (r *Roles) addBindings(objects []*unstructured.Unstructured, included map[roleKey]bool) error {
	for _, o := range objects {
		kind := o.GroupVersionKind()
		if kind.Group != rbacv1.GroupName || kind.Kind != "RoleBinding" && kind.Kind != "ClusterRoleBinding" {
			continue
		}

		binding := &rbacv1.RoleBinding{} // a ClusterRoleBinding has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, o.GetName(), err)
		}

		namespace := ""
		if kind.Kind == "RoleBinding" {
			namespace = o.GetNamespace()
		}

		key := roleKey{kind: binding.RoleRef.Kind, name: binding.RoleRef.Name}
		resource := "clusterroles"

		if key.kind == "Role" {
			key.namespace = namespace
			resource = "roles"
		}

		if !included[key] {
			r.warn("%s %s binds %s %s, which is not part of the provider, so the account can give itself its permissions",
				kind.Kind, o.GetName(), key.kind, key.name)
			r.add(namespace, onRole("bind", resource, key.name))
		}
	}

	return nil
}

func (r *Roles) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// onRole returns the rule for a verb on a Role or ClusterRole.
func onRole(verb, resource, name string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups:     []string{rbacv1.GroupName},
		Resources:     []string{resource},
		ResourceNames: []string{name},
		Verbs:         []string{verb},
	}
}

// joined returns the rules with the resources of the same group, names and verbs in one, without rules
// that earlier ones cover.
func joined(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var needed []rbacv1.PolicyRule

	for _, rule := range rules {
		if covered, _ := validation.Covers(needed, []rbacv1.PolicyRule{rule}); !covered {
			needed = append(needed, rule)
		}
	}

	return collect(needed,
		func(rule rbacv1.PolicyRule) string {
			return fmt.Sprintf("%q %q %q %q", rule.APIGroups, rule.ResourceNames, rule.Verbs, rule.NonResourceURLs)
		},
		func(into *rbacv1.PolicyRule, rule rbacv1.PolicyRule) {
			into.Resources = union(into.Resources, rule.Resources)
		},
	)
}

// bound returns a Role or, without a namespace, a ClusterRole, and its binding to an account.
func bound(name, account types.NamespacedName, rules []rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name},
	}
	group := rbacv1.SchemeGroupVersion.String()

	if name.Namespace == "" {
		return []client.Object{
			&rbacv1.ClusterRole{
				TypeMeta:   metav1.TypeMeta{APIVersion: group, Kind: "ClusterRole"},
				ObjectMeta: meta,
				Rules:      rules,
			},
			&rbacv1.ClusterRoleBinding{
				TypeMeta:   metav1.TypeMeta{APIVersion: group, Kind: "ClusterRoleBinding"},
				ObjectMeta: meta,
				Subjects:   subjects,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			},
		}
	}

	return []client.Object{
		&rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: group, Kind: "Role"},
			ObjectMeta: meta,
			Rules:      rules,
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: group, Kind: "RoleBinding"},
			ObjectMeta: meta,
			Subjects:   subjects,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		},
	}
}
