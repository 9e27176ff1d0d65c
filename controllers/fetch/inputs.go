package fetch

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
)

// inputs are what a resource names for its source, and how that may be read.
type inputs struct {
	*Resolver
	provider v1alpha2.Provider
	// reader has the permissions of the resource's account.
	reader client.Reader
	// tenant reports whether the resource has an account. The operator's own credentials may read more
	// than the account's owner may, so they are not used for a source that such a resource names.
	tenant bool
}

func (r *Resolver) newInputs(provider v1alpha2.Provider) (*inputs, error) {
	reader, err := r.Readers.For(provider)
	if err != nil {
		return nil, err
	}

	_, tenant := r.Readers.Account(provider)

	return &inputs{Resolver: r, provider: provider, reader: reader, tenant: tenant}, nil
}

// local returns the name of an object in the resource's namespace.
func (in *inputs) local(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: in.provider.GetNamespace(), Name: name}
}

// credentialsSecret returns the reference to the Secret of spec.fetchConfig.secretRef, and whether
// the resource has one.
func (in *inputs) credentialsSecret() (access.SecretReference, bool) {
	config := in.provider.GetSpec().FetchConfig
	if config == nil || config.SecretRef == nil {
		return access.SecretReference{}, false
	}

	return access.SecretReference{
		NamespacedName: in.local(config.SecretRef.Name),
		Content:        "the source's credentials",
		Field:          "spec.fetchConfig.secretRef",
	}, true
}
