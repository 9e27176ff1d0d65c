package provider

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/acl"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/problem"
)

// unwatchedDelay is when a reconcile that was ahead of a watch is repeated.
const unwatchedDelay = 10 * time.Second

// followInputs watches the other namespaces in which the resource names objects, after these were read, or an error
// has prevented that. A watch costs memory, so there is none for what its account may not read, or in a namespace that
// does not exist.
//
// unwatched are the namespaces that were not watched when they were read. What has changed there until they are is for
// another reconcile to find.
func (r *run) followInputs(ctx context.Context, unwatched []string, err error) {
	named := namedNamespaces(r.provider)

	switch {
	case err == nil:
	case problem.Is(err, v1alpha2.MissingPermissionsReason), errors.As(err, new(acl.AccessDeniedError)):
		named = nil
	case problem.Is(err, v1alpha2.SecretNotFoundReason), apierrors.IsNotFound(err):
		named = slices.DeleteFunc(named, func(name string) bool { return !r.namespaceExists(ctx, name) })
	default:
		return // it is not known which of them can be read
	}

	r.Watches.Follow(inputsOf(r.provider), named...)

	if slices.ContainsFunc(named, func(name string) bool { return slices.Contains(unwatched, name) }) {
		r.wakeAfter(unwatchedDelay)
	}
}

// namedNamespaces returns the other namespaces in which a resource names objects.
func namedNamespaces(provider v1alpha2.Provider) []string {
	var named []string

	for _, reference := range access.References(provider) {
		if reference.Namespace != provider.GetNamespace() {
			named = append(named, reference.Namespace)
		}
	}

	return named
}

// inputsOf names a resource as the user of the namespaces of its inputs.
func inputsOf(provider v1alpha2.Provider) string {
	return "inputs of " + v1alpha2.FullName(provider)
}

func (r *run) namespaceExists(ctx context.Context, name string) bool {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))

	return r.APIReader.Get(ctx, client.ObjectKey{Name: name}, namespace) == nil
}
