package audit

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Secret is the part of a Secret that the rules need. It contains nothing secret.
type Secret struct {
	Namespace, Name string
	Labels          map[string]string
	Owners          []metav1.OwnerReference
	Type            string
	// Keys are the keys of the data, sorted.
	Keys []string
	// IsKubeconfig reports whether the key "value" contains a kubeconfig with a user and a cluster.
	IsKubeconfig bool
	// ClientExpiry is when the certificate expires that the kubeconfig has for its user; zero if it has
	// none.
	ClientExpiry time.Time
}

// secretKey is the key of all data that the contracts define.
const secretKey = "value"

// NewSecret returns the part of a Secret that the rules need.
func NewSecret(s *corev1.Secret) Secret {
	secret := Secret{
		Namespace: s.Namespace,
		Name:      s.Name,
		Labels:    s.Labels,
		Owners:    s.OwnerReferences,
		Type:      string(s.Type),
		Keys:      slices.Sorted(maps.Keys(s.Data)),
	}

	config, err := clientcmd.Load(s.Data[secretKey])
	if err != nil || len(s.Data[secretKey]) == 0 {
		return secret
	}

	current := config.Contexts[config.CurrentContext]
	if current == nil || config.AuthInfos[current.AuthInfo] == nil || config.Clusters[current.Cluster] == nil {
		return secret
	}

	secret.IsKubeconfig = true
	secret.ClientExpiry = expiryOf(config.AuthInfos[current.AuthInfo].ClientCertificateData)

	return secret
}

// expiryOf returns when the first certificate in PEM expires; zero if there is none.
func expiryOf(data []byte) time.Time {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}
	}

	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}

	return certificate.NotAfter
}

// place returns the place of findings about a Secret that a provider is responsible for.
func (s *Secret) place(provider string) place {
	return place{Kind: "Secret", Object: nameOf(s.Namespace, s.Name), Providers: []string{provider}}
}

// isOwnedBy reports whether the Secret has an owner reference to one of the objects, and whether it is
// controlled by it.
func (s *Secret) isOwnedBy(objects ...*object) (owned, controlled bool) {
	for _, ref := range s.Owners {
		for _, o := range objects {
			if ref.UID == o.GetUID() {
				owned = true
				controlled = controlled || ref.Controller != nil && *ref.Controller
			}
		}
	}

	return owned, controlled
}
