// Package permissions checks whether an account has all permissions that installing a provider
// needs, before any of it is applied.
package permissions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permission allows verbs on the objects of a resource, in a namespace or, if that is empty, in the
// whole cluster.
type Permission struct {
	Namespace string
	Resource  schema.GroupResource
	Verbs     []string
}

func (p Permission) String() string {
	text := fmt.Sprintf("%s %s", strings.Join(p.Verbs, ", "), p.Resource)
	if p.Namespace != "" {
		text += " in namespace " + p.Namespace
	}

	return text
}

// ForObjects returns the permissions needed to install, upgrade, correct and remove the objects,
// sorted. Objects of unknown kinds are left out: their kinds may be served once the provider's CRDs
// are applied.
func ForObjects(mapper meta.RESTMapper, objects []*unstructured.Unstructured) ([]Permission, error) {
	needed := map[string]Permission{}

	for _, o := range objects {
		gvk := o.GroupVersionKind()

		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look up the kind of %s %s: %w", o.GetKind(), o.GetName(), err)
		}

		p := Permission{
			Resource: mapping.Resource.GroupResource(),
			Verbs:    []string{"get", "create", "patch", "delete"},
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			p.Namespace = o.GetNamespace()
		}

		needed[p.Namespace+"/"+p.Resource.String()] = p
	}

	all := make([]Permission, 0, len(needed))
	for _, key := range slices.Sorted(maps.Keys(needed)) {
		all = append(all, needed[key])
	}

	return all, nil
}

// ForHelmStorage returns the permission needed to store Helm's revisions in a namespace.
func ForHelmStorage(namespace string) Permission {
	return Permission{
		Namespace: namespace,
		Resource:  schema.GroupResource{Resource: "secrets"},
		Verbs:     []string{"get", "list", "create", "update", "patch", "delete"},
	}
}

// ForCRDs returns the permission needed to apply CustomResourceDefinitions.
func ForCRDs() Permission {
	return Permission{
		Resource: schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		Verbs:    []string{"get", "create", "patch"},
	}
}

// ForNamespaceLabels returns the permission needed to label a namespace.
func ForNamespaceLabels() Permission {
	return Permission{
		Resource: schema.GroupResource{Resource: "namespaces"},
		Verbs:    []string{"patch"},
	}
}
