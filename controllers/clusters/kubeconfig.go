package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	yaml "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

const (
	// maxKubeConfig limits a kubeconfig in bytes, and maxKubeConfigDepth how deep it is nested.
	maxKubeConfig      = 512 << 10
	maxKubeConfigDepth = 20
)

// KubeConfigError reports that the cluster of spec.kubeConfig cannot be used.
type KubeConfigError struct{ message string }

func (e *KubeConfigError) Error() string { return e.message }

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
		return nil, &KubeConfigError{fmt.Sprintf(
			"Secret %s of spec.kubeConfig does not exist; create it%s", name, deletionHint(provider))}
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}

	data, exists := secret.Data[spec.SecretRef.Key]
	if !exists {
		return nil, &KubeConfigError{fmt.Sprintf(
			"Secret %s of spec.kubeConfig has no key %s; add it%s", name, spec.SecretRef.Key, deletionHint(provider))}
	}

	config, err := parseKubeConfig(data, p.KubeConfig, p.Addresses)
	if err == nil && config.Impersonate.UserName != "" && p.Readers.User(provider) != "" {
		err = errors.New("the user's field as cannot be combined with a ServiceAccount to impersonate; " +
			"remove it, or spec.serviceAccountName and the operator's flag --default-service-account")
	}

	if err != nil {
		return nil, &KubeConfigError{fmt.Sprintf(
			"key %s of Secret %s of spec.kubeConfig: %s", spec.SecretRef.Key, name, err)}
	}

	sum := sha256.Sum256(data)

	return &kubeConfig{key: name.String() + "/" + hex.EncodeToString(sum[:]), rest: config}, nil
}

// parseKubeConfig returns the configuration of the current context of a kubeconfig. It refuses what
// would run programs, read files or send credentials to anyone, unless the options allow it. Its error
// names the field and the fix, and quotes no value.
func parseKubeConfig(
	data []byte, options fluxclient.KubeConfigOptions, addresses *web.Guard,
) (*rest.Config, error) {
	errUnusable := errors.New(
		"it is not a usable kubeconfig; it must contain a server and its credentials inline")

	if len(data) > maxKubeConfig {
		return nil, fmt.Errorf("it is larger than %d KiB; keep only the current context", maxKubeConfig>>10)
	}

	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil || !isPlain(&document, maxKubeConfigDepth) {
		return nil, errUnusable
	}

	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errUnusable
	}

	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, errors.New("current-context names no context; set it")
	}

	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, errors.New("the current context names a cluster or user that does not exist; correct it")
	}

	if err := checkCluster(cluster, options); err != nil {
		return nil, err
	}

	if err := checkAddress(cluster.Server, addresses); err != nil {
		return nil, err
	}

	if err := checkUser(user, options); err != nil {
		return nil, err
	}

	// Only the current context is used. The error is left out, because it may quote the kubeconfig.
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, errUnusable
	}

	if err := fluxclient.ValidateKubeConfig(config); err != nil {
		return nil, errUnusable
	}

	parsed, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errUnusable
	}

	return parsed, nil
}

// isPlain reports whether a document has no aliases, which can make a small text huge, and is not
// nested deeper than depth.
func isPlain(node *yaml.Node, depth int) bool {
	if node.Kind == yaml.AliasNode || depth == 0 {
		return false
	}

	for _, child := range node.Content {
		if !isPlain(child, depth-1) {
			return false
		}
	}

	return true
}

// checkCluster checks the cluster of a kubeconfig.
func checkCluster(cluster *clientcmdapi.Cluster, options fluxclient.KubeConfigOptions) error {
	if cluster.CertificateAuthority != "" {
		return errors.New("certificate-authority is a path, which is not allowed; use certificate-authority-data")
	}

	if cluster.InsecureSkipTLSVerify && !options.InsecureTLS {
		return errors.New("insecure-skip-tls-verify is not allowed; set certificate-authority-data instead, " +
			"or run the operator with --insecure-kubeconfig-tls")
	}

	server, err := url.Parse(cluster.Server)

	switch {
	case err != nil || !hasScheme(server, "https", "http"):
		return errors.New("server must be a URL that starts with https://")
	case server.User != nil:
		return errors.New("server contains credentials, which is not allowed; move them to the user")
	case server.Scheme == "http" && !options.InsecureTLS:
		return errors.New("server uses plain HTTP, which is not allowed; use https://, " +
			"or run the operator with --insecure-kubeconfig-tls")
	}

	if cluster.ProxyURL == "" {
		return nil
	}

	proxy, err := url.Parse(cluster.ProxyURL)
	if err != nil || !hasScheme(proxy, "https", "http", "socks5") {
		return errors.New("proxy-url must start with https://, http:// or socks5://")
	}

	return nil
}

// checkAddress checks the address of a server that is not a name. A proxy would connect to it.
func checkAddress(server string, addresses *web.Guard) error {
	parsed, err := url.Parse(server)
	if err != nil {
		return errors.New("server must be a URL that starts with https://")
	}

	return addresses.CheckHost(parsed.Hostname())
}

// hasScheme reports whether an address names a host and has one of the schemes.
func hasScheme(address *url.URL, schemes ...string) bool {
	return address.Host != "" && slices.Contains(schemes, address.Scheme)
}

// checkUser checks the user of a kubeconfig.
func checkUser(user *clientcmdapi.AuthInfo, options fluxclient.KubeConfigOptions) error {
	for _, file := range []struct{ path, field, instead string }{
		{user.ClientCertificate, "client-certificate", "client-certificate-data"},
		{user.ClientKey, "client-key", "client-key-data"},
		{user.TokenFile, "tokenFile", "token"},
	} {
		if file.path != "" {
			return fmt.Errorf("%s is a path, which is not allowed; use %s", file.field, file.instead)
		}
	}

	switch {
	case user.AuthProvider != nil:
		return errors.New("auth-provider is not supported; use a token or a client certificate")
	case user.Exec != nil && !options.InsecureExecProvider:
		return errors.New("exec runs a program, which is not allowed; use a token or a client certificate, " +
			"or run the operator with --insecure-kubeconfig-exec")
	}

	return nil
}

// sanitize returns a configuration with only what a kubeconfig may decide. The guard of its transport
// limits the requests.
func sanitize(config *rest.Config, options fluxclient.KubeConfigOptions) *rest.Config {
	// Flux asks the API server whether it throttles requests itself. All supported ones do, and one that
	// does not answer would delay this: so the request is canceled before it is sent.
	unsent, cancel := context.WithCancel(context.Background())
	cancel()

	sanitized := fluxclient.KubeConfig(unsent, config, options)
	sanitized.QPS = -1

	// Flux drops the user to impersonate, and without it the user would have other permissions.
	sanitized.Impersonate = config.Impersonate

	// A timeout of the configuration would also end watches.
	sanitized.Timeout = 0
	sanitized.UserAgent = rest.DefaultKubernetesUserAgent()

	return sanitized
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
