package clusters_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/clusters"
)

// apiServer is an API server that has every ConfigMap it is asked for.
type apiServer struct {
	*httptest.Server

	mu    sync.Mutex
	users []string // the impersonated user of each request
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()

	s := &apiServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)

	return s
}

// ServeHTTP answers with a ConfigMap, or with the namespace that identifies the cluster.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.users = append(s.users, r.Header.Get("Impersonate-User"))
	s.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")

	if r.URL.Path == "/api/v1/namespaces/kube-system" {
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"uid"}}`)
		return
	}

	fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"from":"server"}}`)
}

// seen returns the impersonated users since the last call.
func (s *apiServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	users := s.users
	s.users = nil

	return users
}

// serve starts an API server that has only the namespace kube-system, and returns its address.
func serve(t *testing.T, uid string) string {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			http.NotFound(w, r)
			return
		}

		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, uid)
	}))
	t.Cleanup(server.Close)

	return server.URL
}

// connect connects to a server, whose kinds are known without asking it.
func connect(t *testing.T, server string, namespaces map[string]cache.Config) *clusters.Cluster {
	t.Helper()

	// With a dialer, as leader election sets it, clients do not share connections.
	config := &rest.Config{Host: server, Dial: (&net.Dialer{}).DialContext}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}

	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)

	cluster, err := clusters.NewCluster(clusters.Connection{
		Config:     config,
		HTTPClient: httpClient,
		Mapper:     mapper,
		Scheme:     clientgoscheme.Scheme,
		Namespaces: namespaces,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}

	return cluster
}

// newPool returns a pool, and the client of the cluster with the Secrets.
func newPool(t *testing.T, secrets ...client.Object) (*clusters.Pool, client.Client) {
	t.Helper()

	c := fake.NewClientBuilder().WithObjects(secrets...).Build()

	return &clusters.Pool{
		Local:   connect(t, serve(t, "local"), nil),
		Readers: &access.Readers{APIReader: c},
		Scheme:  runtime.NewScheme(),
	}, c
}

// kubeConfig returns a kubeconfig for a server.
func kubeConfig(server string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
}

// secret returns a Secret with a kubeconfig under the key "value".
func secret(name, kubeConfig string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: name},
		Data:       map[string][]byte{"value": []byte(kubeConfig)},
	}
}

// provider returns a provider that is installed as an account into the cluster of a Secret; both
// may be empty.
func provider(name, account, secret string) v1alpha2.Provider {
	p := &v1alpha2.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: name, UID: types.UID(name)},
	}
	p.Spec.ServiceAccountName = account

	if secret != "" {
		p.Spec.KubeConfig = &v1alpha2.KubeConfig{}
		p.Spec.KubeConfig.SecretRef.Name = secret
		p.Spec.KubeConfig.SecretRef.Key = "value"
	}

	return p
}
