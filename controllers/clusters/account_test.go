package clusters_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/object"
)

// countingLimiter counts requests, and delays none.
type countingLimiter struct {
	flowcontrol.RateLimiter

	count *atomic.Int64
}

func (l countingLimiter) Wait(context.Context) error {
	l.count.Add(1)
	return nil
}

// TestAccountsShare: the releases of all accounts count against the limit for the operator's requests, and only the
// operator itself asks which kinds there are.
func TestAccountsShare(t *testing.T) {
	g := NewWithT(t)

	var sent, discoveries atomic.Int64

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")

		switch r.URL.Path {
		case "/api", "/apis":
			g.Expect(r.Header.Get("Impersonate-User")).To(BeEmpty())
			discoveries.Add(1)
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[
				{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get"]}]}`)
		case "/api/v1/namespaces/kube-system":
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"uid"}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)

	var limited atomic.Int64

	cluster, err := clusters.NewCluster(clusters.Connection{
		Config: &rest.Config{
			Host:        server.URL,
			RateLimiter: countingLimiter{flowcontrol.NewFakeAlwaysRateLimiter(), &limited},
		},
		HTTPClient: server.Client(),
		Mapper:     meta.NewDefaultRESTMapper(nil),
		Scheme:     clientgoscheme.Scheme,
	}, nil)
	g.Expect(err).NotTo(HaveOccurred())

	pool := &clusters.Pool{Local: cluster, Readers: &access.Readers{}}
	o := object.Key{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "tiny", Name: "a"}
	release := types.NamespacedName{Namespace: "tiny", Name: "infrastructure-tiny"}

	for _, account := range []string{"", "one", "two"} {
		target, err := pool.For(t.Context(), provider("tiny", account, ""))
		g.Expect(err).NotTo(HaveOccurred())

		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind)
		live.SetName(o.Name)
		_, err = target.Releases.Compare(t.Context(), release, []*unstructured.Unstructured{live})
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(discoveries.Load()).To(BeEquivalentTo(2), "/api and /apis")
	g.Expect(limited.Load()).To(Equal(sent.Load()))
}
