package watch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Scope selects the provider resources that the operator reconciles. The operator reads the others
// too: a cluster has one core provider, and each provider once, no matter who manages it.
type Scope struct {
	// Namespaces of the resources; empty for all.
	Namespaces []string
	// Selector of the resources' labels; nil for all.
	Selector labels.Selector
}

// NewScope parses a scope from command-line flags. Its error names the invalid part.
func NewScope(namespaces []string, selector string) (Scope, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return Scope{}, fmt.Errorf("invalid label selector %q: %w; use kubectl's syntax, e.g. team=a", selector, err)
	}

	for _, namespace := range namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return Scope{}, fmt.Errorf("invalid namespace %q to watch: %s", namespace, strings.Join(problems, "; "))
		}
	}

	return Scope{Namespaces: namespaces, Selector: parsed}, nil
}

// Includes reports whether the operator reconciles a resource.
func (s Scope) Includes(resource client.Object) bool {
	inNamespace := len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, resource.GetNamespace())
	selected := s.Selector == nil || s.Selector.Matches(labels.Set(resource.GetLabels()))

	return inNamespace && selected
}

// Concerns passes on the events of resources that the operator reconciles, or did before a change of their
// labels.
func (s Scope) Concerns() predicate.Predicate {
	concerned := predicate.NewPredicateFuncs(s.Includes)

	return predicate.Funcs{
		CreateFunc:  concerned.Create,
		DeleteFunc:  concerned.Delete,
		GenericFunc: concerned.Generic,
		UpdateFunc:  func(e event.UpdateEvent) bool { return s.Includes(e.ObjectOld) || s.Includes(e.ObjectNew) },
	}
}

// StatusLost passes on that a resource has lost its status, which nothing but a reconcile writes again.
var StatusLost = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, wasProvider := e.ObjectOld.(v1alpha2.Provider)
		now, isProvider := e.ObjectNew.(v1alpha2.Provider)

		// The API server writes -1 into a status that is missing.
		return wasProvider && isProvider &&
			before.GetStatus().ObservedGeneration > 0 && now.GetStatus().ObservedGeneration <= 0
	},
}

// CacheNamespaces returns the scope's namespaces as a cache's option; nil for all.
func (s Scope) CacheNamespaces() map[string]cache.Config {
	if len(s.Namespaces) == 0 {
		return nil
	}

	namespaces := map[string]cache.Config{}
	for _, namespace := range s.Namespaces {
		namespaces[namespace] = cache.Config{}
	}

	return namespaces
}
