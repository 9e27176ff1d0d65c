// Package permissions lists the permissions that an account needs to install, upgrade, correct and remove a provider,
// as a table for the documentation and as roles.
package permissions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/object"
)

// Permission allows verbs on objects of a resource.
type Permission struct {
	// Namespace of the objects; empty for the whole cluster.
	Namespace string
	// Resource of the objects. A subresource follows a slash, as in rules of Roles.
	Resource schema.GroupResource
	// Names of the objects, sorted; empty for all.
	Names []string
	// Verbs in the order of the table.
	Verbs []string
}

// maxNames is how many names of objects a text has.
const maxNames = 3

// String describes the permission: "get, delete roles.rbac.authorization.k8s.io a and b in namespace n".
func (p Permission) String() string {
	text := strings.Join(p.Verbs, ", ") + " " + p.Resource.String()

	if len(p.Names) > 0 {
		text += " " + object.List(p.Names, maxNames)
	}

	if p.Namespace != "" {
		text += " in namespace " + p.Namespace
	}

	return text
}

// rule returns the permission as a rule of a Role in its namespace, or of a ClusterRole.
func (p Permission) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups:     []string{p.Resource.Group},
		Resources:     []string{p.Resource.Resource},
		ResourceNames: p.Names,
		Verbs:         p.Verbs,
	}
}

// merge returns the permissions sorted, with the names of one resource, and the verbs for the same
// names, in one permission.
func merge(all []Permission) []Permission {
	byNames := collect(all,
		func(p Permission) string { return fmt.Sprint(p.Namespace, "/", p.Resource, len(p.Names) > 0, p.Verbs) },
		func(into *Permission, p Permission) { into.Names = slices.Concat(into.Names, p.Names) },
	)

	for i := range byNames {
		slices.Sort(byNames[i].Names)
		byNames[i].Names = slices.Compact(byNames[i].Names)
	}

	merged := collect(byNames,
		func(p Permission) string { return fmt.Sprint(p.Namespace, "/", p.Resource, p.Names) },
		func(into *Permission, p Permission) { into.Verbs = union(into.Verbs, p.Verbs) },
	)

	slices.SortFunc(merged, func(a, b Permission) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Resource.String(), b.Resource.String()),
			cmp.Compare(len(a.Names), len(b.Names)),
			slices.Compare(a.Names, b.Names),
		)
	})

	return merged
}

// collect adds up the items, permissions or rules, that have the same key.
func collect[T any](all []T, key func(T) string, add func(*T, T)) []T {
	index := map[string]int{}

	var collected []T

	for _, item := range all {
		k := key(item)

		i, found := index[k]
		if !found {
			index[k] = len(collected)
			collected = append(collected, item)

			continue
		}

		add(&collected[i], item)
	}

	return collected
}

// union returns the items of both lists, in their order, each once. It changes neither.
func union(a, b []string) []string {
	all := slices.Clone(a)

	for _, item := range b {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}

	return all
}
