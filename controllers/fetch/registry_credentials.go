package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/controllers/access"
)

// refuseCredentials returns an error instead of credentials, for registries without TLS.
func refuseCredentials(credentials oci.Credentials) oci.Credentials {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		found, err := credentials(ctx, host)
		if err == nil && found != auth.EmptyCredential {
			err = &ConfigError{fmt.Sprintf("credentials are not sent to registry %s over plain HTTP; use https, as oci://%s",
				host, host)}
		}

		return auth.EmptyCredential, err
	}
}

// secretOptions returns the options in a Secret.
func (in *inputs) secretOptions(
	ctx context.Context, reference access.SecretReference, host string,
) (oci.Options, error) {
	data, err := access.ReadSecret(ctx, in.reader, reference)
	if err != nil {
		return oci.Options{}, err
	}

	options, err := oci.OptionsFromSecret(host, data)
	if err != nil {
		return oci.Options{}, &ConfigError{fmt.Sprintf("Secret %s: %v", reference.NamespacedName, err)}
	}

	return options, nil
}

// defaultCredentials returns the credentials for a registry of a provider whose fetchConfig has
// none.
func (in *inputs) defaultCredentials(ctx context.Context, host string) oci.Credentials {
	all := []oci.Credentials{in.pullSecrets(host)}
	if own := in.variablesCredentials(ctx, host); own != nil {
		all = slices.Insert(all, 0, own)
	}

	return oci.ChainCredentials(all...)
}

// variablesCredentials returns the credentials for a registry among the provider's variables; nil if there are none.
// That the Secret does not exist is reported when the variables are read.
func (in *inputs) variablesCredentials(ctx context.Context, host string) oci.Credentials {
	reference, named := access.VariablesSecret(in.provider)
	if !named {
		return nil
	}

	data, err := access.ReadSecret(ctx, in.reader, reference)
	if err != nil {
		return nil
	}

	return oci.VariableCredentials(host, data)
}

// pullSecrets returns the credentials in the pull secrets of the ServiceAccount that installs the
// provider. They are read when the registry asks for credentials, since an account need not be able
// to read itself for a public registry.
func (in *inputs) pullSecrets(host string) oci.Credentials {
	return func(ctx context.Context, asking string) (auth.Credential, error) {
		if asking != host {
			return auth.EmptyCredential, nil
		}

		all, err := in.readPullSecrets(ctx, host)
		if err != nil {
			return auth.EmptyCredential, err
		}

		return oci.ChainCredentials(all...)(ctx, host)
	}
}

// readPullSecrets reads the pull secrets. As for pods, those that do not exist or cannot be used are
// skipped.
func (in *inputs) readPullSecrets(ctx context.Context, host string) ([]oci.Credentials, error) {
	account := &corev1.ServiceAccount{}

	name, named := in.Readers.Account(in.provider)
	if !named {
		name.Name = "default"
	}

	err := in.reader.Get(ctx, name, account)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read ServiceAccount %s: %w", name, err)
	}

	var all []oci.Credentials

	for _, ref := range account.ImagePullSecrets {
		options, err := in.secretOptions(ctx, access.SecretReference{NamespacedName: in.local(ref.Name)}, host)
		if errors.As(err, new(*access.ForbiddenError)) {
			return nil, err
		}

		if err == nil && options.Credentials != nil {
			all = append(all, options.Credentials)
		}
	}

	return all, nil
}
