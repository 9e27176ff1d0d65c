package measure

import (
	"io"
	"log"
	"net/http/httputil"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// The Secrets with kubeconfigs have a name and key that are the same in each namespace.
const kubeconfigName, kubeconfigKey = "kubeconfig", "value"

// Proxy returns a proxy that passes requests on to the API server of a configuration, as the configuration's user.
func Proxy(config *rest.Config) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}

	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}

	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
	}, nil
}

// Kubeconfig returns the Secret with the kubeconfig for the providers of a namespace: for a server with an address, and
// an authority in PEM.
func Kubeconfig(namespace, address string, authority []byte) *corev1.Secret {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: authority}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"

	data, err := clientcmd.Write(*config)
	if err != nil {
		panic(err) // a programming error, which every run finds
	}

	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kubeconfigName},
		Data:       map[string][]byte{kubeconfigKey: data},
	}
}

// Remote returns the resource of a release that is installed by the kubeconfig of its namespace.
func Remote(r *harness.Release) v1alpha2.Provider {
	p := r.Resource()
	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: kubeconfigName}, Key: kubeconfigKey,
	}}

	return p
}
