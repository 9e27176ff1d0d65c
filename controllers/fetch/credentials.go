package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Keys of the Secret that spec.fetchConfig.secretRef names; a token may also have the name that
// clusterctl gives it.
const (
	keyToken       = "token"
	keyCA          = "ca.crt"
	keyCertificate = "tls.crt"
	keyKey         = "tls.key"
	keyProxy       = "proxy"
)

// SecretNotFoundError says that the Secret with a source's credentials does not exist.
type SecretNotFoundError struct{ Secret types.NamespacedName }

func (e *SecretNotFoundError) Error() string {
	return fmt.Sprintf(
		"Secret %s with the source's credentials does not exist; create it, or correct spec.fetchConfig.secretRef",
		e.Secret,
	)
}

// credentials finds, when it is called, those of the Secret that the resource names for its source;
// then a token among the provider's variables, as cluster-api-operator has it; then what otherwise
// gives, if it is not nil.
func (r *Resolver) credentials(
	provider v1alpha2.Provider,
	otherwise func(source.Server) string,
) source.CredentialsFunc {
	return func(ctx context.Context, server source.Server) (web.Credentials, error) {
		var found web.Credentials

		if fetch := provider.GetSpec().FetchConfig; fetch != nil && fetch.SecretRef != nil {
			data, err := r.secret(ctx, types.NamespacedName{Namespace: provider.GetNamespace(), Name: fetch.SecretRef.Name})
			if err != nil {
				return found, err
			}

			found = web.Credentials{
				Username: string(data[corev1.BasicAuthUsernameKey]),
				Password: string(data[corev1.BasicAuthPasswordKey]),
				Token: cmp.Or(
					string(data[keyToken]),
					token(data, server),
				),
				CA:          data[keyCA],
				Certificate: data[keyCertificate],
				Key:         data[keyKey],
				Proxy:       string(data[keyProxy]),
			}
		}

		if found.Token != "" || found.Username != "" {
			return found, nil
		}

		if name, named := provider.GetSpec().VariablesSecret(provider.GetNamespace()); named && len(server.Tokens) > 0 {
			data, err := r.secret(ctx, name)
			// that, the step of the variables says
			if missing := (*SecretNotFoundError)(nil); err != nil && !errors.As(err, &missing) {
				return found, err
			}

			found.Token = token(data, server)
		}

		if found.Token == "" && otherwise != nil {
			found.Token = otherwise(server)
		}

		return found, nil
	}
}

// token is the one for a server in a Secret.
func token(data map[string][]byte, server source.Server) string {
	for _, name := range server.Tokens {
		if value := data[name]; len(value) > 0 {
			return string(value)
		}
	}

	return ""
}

func (r *Resolver) secret(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	secret := &corev1.Secret{}

	err := r.Reader.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil, &SecretNotFoundError{Secret: name}
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}

	return secret.Data, nil
}
