package object

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Inventory returns the inventory of objects in the status of a provider, sorted. An entry is the id of Flux's, and the
// version of the kind.
func Inventory(keys []Key) []string {
	entries := make([]string, 0, len(keys))
	for _, key := range Union(keys, nil) {
		entries = append(entries, idOf(key)+separator+key.Version)
	}

	slices.Sort(entries)

	return entries
}

// KeysOfInventory returns the objects of an inventory, without entries that name none.
func KeysOfInventory(entries []string) []Key {
	keys := make([]Key, 0, len(entries))

	for _, entry := range entries {
		// The name may have separators, too: those of RBAC's objects are not limited.
		parts := strings.Split(entry, separator)
		if len(parts) < 5 {
			continue
		}

		after := len(parts) - 3
		kind := schema.GroupVersionKind{Group: parts[after], Kind: parts[after+1], Version: parts[after+2]}
		name := strings.Join(parts[1:after], separator)

		if kind.Group == rbacv1.GroupName {
			name = strings.ReplaceAll(name, colon, ":")
		}

		keys = append(keys, Key{GroupVersionKind: kind, Namespace: parts[0], Name: name})
	}

	return keys
}

// Union returns the objects of both lists, each once, as the first one has them.
func Union(first, second []Key) []Key {
	all, seen := slices.Concat(first, second), map[string]bool{}

	return slices.DeleteFunc(all, func(key Key) bool {
		id := idOf(key)
		again := seen[id]
		seen[id] = true

		return again
	})
}

// Without returns the objects of a list that another one does not have, of whatever version.
func Without(list, other []Key) []Key {
	ids := make(map[string]bool, len(other))
	for _, key := range other {
		ids[idOf(key)] = true
	}

	return slices.DeleteFunc(slices.Clone(list), func(key Key) bool { return ids[idOf(key)] })
}

const (
	separator = "_"
	// colon replaces the colons in names of RBAC's objects, as in Flux's inventories.
	colon = "__"
)

// idOf returns the id of an object.
func idOf(key Key) string {
	name := key.Name
	if key.Group == rbacv1.GroupName {
		name = strings.ReplaceAll(name, ":", colon)
	}

	return strings.Join([]string{key.Namespace, name, key.Group, key.Kind}, separator)
}
