package audittest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Certificate returns a certificate that expires after a time, which may be negative, in PEM. It signs itself.
func Certificate(expires time.Duration) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}

	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "example"},
		NotBefore:             time.Now().Add(-365 * 24 * time.Hour),
		NotAfter:              time.Now().Add(expires),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Kubeconfig returns a kubeconfig whose client certificate expires after a time.
func Kubeconfig(expires time.Duration) ([]byte, error) {
	certificate, err := Certificate(expires)
	if err != nil {
		return nil, err
	}

	config := clientcmdapi.NewConfig()
	config.Clusters["one"] = &clientcmdapi.Cluster{Server: "https://one.example.com:6443"}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate}
	config.Contexts["admin@one"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "admin"}
	config.CurrentContext = "admin@one"

	return clientcmd.Write(*config)
}
