package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	adminUser = "admin" // of callers who do not name a user
	ownUser   = "bed"   // of the bed's own requests
)

// Config returns a client configuration for the user admin, without client-side rate limits. The
// caller may change it.
func (b *Bed) Config() *rest.Config { return rest.CopyConfig(b.admin) }

// Kubeconfig returns the path of a kubeconfig file for the user admin.
func (b *Bed) Kubeconfig() string { return b.kubeconfigPath(adminUser) }

// ConfigFor is like Config, for any user. The user needs no registration and may do everything
// (group system:masters). A separate user for a program makes its requests identifiable in the
// audit log.
func (b *Bed) ConfigFor(user string) (*rest.Config, error) {
	pair, err := b.ca.client(user, "system:masters")
	if err != nil {
		return nil, err
	}

	return &rest.Config{
		Host:            b.url(),
		TLSClientConfig: rest.TLSClientConfig{CAData: b.ca.bundle(), CertData: pair.certificate, KeyData: pair.key},
		QPS:             -1,
	}, nil
}

// KubeconfigFor returns the path of a kubeconfig file for any user, as ConfigFor does for
// configurations.
func (b *Bed) KubeconfigFor(user string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	path := b.kubeconfigPath(user)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}

	config, err := b.ConfigFor(user)
	if err != nil {
		return "", err
	}

	return path, writeKubeconfig(path, user, config)
}

// kubeconfigPath returns a path without colons, which separate paths in the variable KUBECONFIG.
func (b *Bed) kubeconfigPath(user string) string {
	return b.file(url.QueryEscape(user) + ".kubeconfig")
}

func writeKubeconfig(path, user string, config *rest.Config) error {
	const cluster = "bed"

	file := clientcmdapi.NewConfig()
	file.Clusters[cluster] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}

	file.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write the kubeconfig of user %s: %w", user, err)
	}

	return nil
}
