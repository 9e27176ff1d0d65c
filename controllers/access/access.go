// Package access reads the objects that provider resources name, with the permissions of the resource's
// ServiceAccount, or else of the operator. A resource can therefore not be used to read what its account
// may not read.
package access

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Readers finds the reader for what a resource names in the cluster of the resources.
type Readers struct {
	// APIReader reads from the API server with the operator's permissions.
	APIReader client.Reader
	// Kept reads Secrets with the operator's permissions, and keeps them in memory until a watch shows a change; nil to
	// read them with APIReader each time.
	Kept *Kept
	// Cache lists metadata with the operator's permissions; nil to list with APIReader.
	Cache client.Reader
	// Impersonate returns a reader with the permissions of a user; nil to use the operator's for all
	// resources, as the command line does, which has only those of its user.
	Impersonate func(user string) (client.Reader, error)
	// DefaultServiceAccount is the account, in the resource's namespace, of resources that name none;
	// empty for the operator's own permissions.
	DefaultServiceAccount string
	// NoCrossNamespaceRefs refuses to read objects in other namespaces than the resource's.
	NoCrossNamespaceRefs bool
}

// Account returns the ServiceAccount that a resource runs as, and whether it has one.
func (r *Readers) Account(provider v1alpha2.Provider) (types.NamespacedName, bool) {
	name := cmp.Or(provider.GetSpec().ServiceAccountName, r.DefaultServiceAccount)

	return types.NamespacedName{Namespace: provider.GetNamespace(), Name: name}, name != ""
}

// User returns the name of the user to impersonate for a resource; empty for none.
func (r *Readers) User(provider v1alpha2.Provider) string {
	account, named := r.Account(provider)
	if !named {
		return ""
	}

	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// For returns the reader for what a resource names. Get asks the API server, at least for a resource that was changed:
// a Secret that was changed with it may not have reached the watch yet. List may be answered by
// the cache if the resource has no account. Both return a *ForbiddenError if the account lacks the
// permission, and an acl.AccessDeniedError for other namespaces if these are refused.
func (r *Readers) For(provider v1alpha2.Provider) (client.Reader, error) {
	reader := &accountReader{get: r.APIReader, list: r.APIReader}

	switch {
	case r.Kept != nil && isChanged(provider):
		reader.get = live{r.Kept}
	case r.Kept != nil:
		reader.get = r.Kept
	}

	if r.Cache != nil {
		reader.list = r.Cache
	}

	if user := r.User(provider); user != "" && r.Impersonate != nil {
		impersonated, err := r.Impersonate(user)
		if err != nil {
			return nil, err
		}

		account, _ := r.Account(provider)
		reader = &accountReader{get: impersonated, list: impersonated, user: user, account: account, own: r.APIReader}
	}

	if r.NoCrossNamespaceRefs {
		reader.namespace = provider.GetNamespace()
	}

	return reader, nil
}

// isChanged reports whether a resource has been changed, or a reconcile of it requested, since it was reconciled last.
func isChanged(provider v1alpha2.Provider) bool {
	status := provider.GetStatus()

	return provider.GetGeneration() != status.ObservedGeneration ||
		provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation] != status.LastHandledReconcileAt
}
