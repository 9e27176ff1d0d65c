package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// requestTimeout is the deadline of a request to another cluster.
const requestTimeout = 30 * time.Second

// refuse returns the problem of a cluster of spec.kubeConfig that cannot be used.
func refuse(format string, args ...any) error {
	return problem.Refuse(v1alpha2.KubeConfigErrorReason, format, args...)
}

// kubeConfig is a kubeconfig from a Secret.
type kubeConfig struct {
	// key identifies the Secret and its content: a changed kubeconfig has another key.
	key  string
	rest *rest.Config
}

// readKubeConfig reads the kubeconfig of a resource. It returns nil for a resource without one.
func (p *Pool) readKubeConfig(ctx context.Context, provider v1alpha2.Provider) (*kubeConfig, error) {
	spec := provider.GetSpec().KubeConfig
	if spec == nil {
		return nil, nil
	}

	reader, err := p.Readers.For(provider)
	if err != nil {
		return nil, err
	}

	name := types.NamespacedName{Namespace: provider.GetNamespace(), Name: spec.SecretRef.Name}
	secret := &corev1.Secret{}

	err = reader.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil, refuse(
			"Secret %s of spec.kubeConfig does not exist; create it%s", name, deletionHint(provider))
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}

	data, exists := secret.Data[spec.SecretRef.Key]
	if !exists {
		return nil, refuse(
			"Secret %s of spec.kubeConfig has no key %s; add it%s", name, spec.SecretRef.Key, deletionHint(provider))
	}

	config, err := parseKubeConfig(data)
	if err == nil && config.Impersonate.UserName != "" && p.Readers.User(provider) != "" {
		err = errors.New("the user's field as cannot be combined with a ServiceAccount to impersonate; " +
			"remove it, or spec.serviceAccountName and the operator's flag --default-service-account")
	}

	if err != nil {
		return nil, refuse(
			"key %s of Secret %s of spec.kubeConfig: %s", spec.SecretRef.Key, name, err)
	}

	sum := sha256.Sum256(data)

	return &kubeConfig{key: name.String() + "/" + hex.EncodeToString(sum[:]), rest: config}, nil
}

// parseKubeConfig returns the configuration of the current context of a kubeconfig, which must contain all that it
// needs. Its error quotes no credentials.
func parseKubeConfig(data []byte) (*rest.Config, error) {
	errUnusable := errors.New(
		"it is not a usable kubeconfig; it must contain a server and its credentials inline")

	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errUnusable
	}

	if err := checkFiles(config); err != nil {
		return nil, err
	}

	parsed, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errUnusable
	}

	if parsed.ExecProvider != nil || parsed.AuthProvider != nil {
		return nil, errors.New("exec and auth-provider are not allowed; use a token or a client certificate")
	}

	// It is shown.
	if server, err := url.Parse(parsed.Host); err != nil || server.User != nil {
		return nil, errors.New("server must be a URL without credentials; move them to the user")
	}

	parsed.UserAgent = rest.DefaultKubernetesUserAgent()
	parsed.Timeout = requestTimeout
	parsed.QPS = -1 // the API server throttles requests itself

	return parsed, nil
}

// checkFiles returns an error if a kubeconfig names files: they would be the operator's own. The rules are Flux's,
// whose package for them would link kubectl and kustomize.
func checkFiles(config *clientcmdapi.Config) error {
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf(
				"cluster %q has a certificate-authority file; only certificate-authority-data is supported", name)
		}
	}

	for name, user := range config.AuthInfos {
		switch {
		case user.TokenFile != "":
			return fmt.Errorf("user %q has a tokenFile; only an inline token is supported", name)
		case user.ClientCertificate != "":
			return fmt.Errorf("user %q has a client-certificate file; only client-certificate-data is supported", name)
		case user.ClientKey != "":
			return fmt.Errorf("user %q has a client-key file; only client-key-data is supported", name)
		}
	}

	return nil
}

// deletionHint completes a message for a resource that is being deleted, with what to do if its
// cluster no longer exists. It is empty for other resources.
func deletionHint(provider v1alpha2.Provider) string {
	if provider.GetDeletionTimestamp().IsZero() {
		return ""
	}

	return fmt.Sprintf(
		", or, if that cluster no longer exists, remove the finalizer %s from this resource", v1alpha2.Finalizer)
}
