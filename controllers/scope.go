package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scope is which provider resources the operator looks after. It sees the others, too, and counts
// them: a cluster has one core and each provider once, whoever looks after them.
type Scope struct {
	// Namespaces that the resources are in; empty for all.
	Namespaces []string
	// Selector of the resources' labels; nil for all.
	Selector labels.Selector
}

// NewScope reads a scope as the command line has it. Its error says which part is not valid.
func NewScope(namespaces []string, selector string) (Scope, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return Scope{}, fmt.Errorf(
			"the label selector %q is not valid; write it as kubectl takes it, e.g. team=a: %w",
			selector,
			err,
		)
	}

	for _, namespace := range namespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return Scope{}, fmt.Errorf("%q cannot be a namespace to watch: %s", namespace, strings.Join(wrong, "; "))
		}
	}

	return Scope{Namespaces: namespaces, Selector: parsed}, nil
}

// Includes reports whether the operator looks after a resource.
func (s Scope) Includes(resource client.Object) bool {
	return (len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, resource.GetNamespace())) &&
		(s.Selector == nil || s.Selector.Matches(labels.Set(resource.GetLabels())))
}

// caches are the scope's namespaces as caches take them; nil for all.
func (s Scope) caches() map[string]cache.Config {
	if len(s.Namespaces) == 0 {
		return nil
	}

	namespaces := map[string]cache.Config{}
	for _, namespace := range s.Namespaces {
		namespaces[namespace] = cache.Config{}
	}

	return namespaces
}
