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

// For returns the reader for what a resource names, which asks the API server. It returns a *problem.Error if the
// account lacks the permission, and an acl.AccessDeniedError for other namespaces if these are refused.
func (r *Readers) For(provider v1alpha2.Provider) (client.Reader, error) {
	reader := &accountReader{reader: r.APIReader}

	if user := r.User(provider); user != "" && r.Impersonate != nil {
		impersonated, err := r.Impersonate(user)
		if err != nil {
			return nil, err
		}

		account, _ := r.Account(provider)
		reader = &accountReader{reader: impersonated, user: user, account: account, operator: r.APIReader}
	}

	if r.NoCrossNamespaceRefs {
		reader.namespace = provider.GetNamespace()
	}

	return reader, nil
}
