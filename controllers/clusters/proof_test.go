package clusters_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// store is what an API server stores: ConfigMaps by path.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte
	written int
}

// server returns the address of an API server that claims to be a cluster. Several may share a store.
func (s *store) server(t *testing.T, uid string) string {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()

		w.Header().Set("Content-Type", "application/json")

		switch {
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"`+uid+`"}}`)
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)

			var created struct{ Metadata struct{ Name string } }

			_ = json.Unmarshal(body, &created)
			s.objects[path.Join(r.URL.Path, created.Metadata.Name)] = body
			s.written++

			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		case len(s.objects[r.URL.Path]) == 0:
			http.NotFound(w, r)
		case r.Method == http.MethodDelete:
			delete(s.objects, r.URL.Path)

			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
		default:
			_, _ = w.Write(s.objects[r.URL.Path])
		}
	}))
	t.Cleanup(server.Close)

	return server.URL
}

func newStore() *store { return &store{objects: map[string][]byte{}} }

// TestIdentityNeedsProof checks that a server is believed to be the cluster of others only if it shows what is written
// there.
func TestIdentityNeedsProof(t *testing.T) {
	const own, far = "own", "far"

	for name, c := range map[string]struct {
		// claims is the cluster that the second server claims to be, and shares whether it is that one.
		claims    string
		shares    bool
		namespace string
		// other is the namespace of the first kubeconfig, to the cluster far; empty for the operator's own cluster.
		other string
		want  bool
	}{
		"the operator's own cluster":                   {own, true, "operator", "", true},
		"one that claims to be the operator's own":     {own, false, "operator", "", false},
		"the own one, if the namespace is not known":   {own, true, "", "", false},
		"a cluster of another namespace":               {far, true, "operator", "team", true},
		"one that claims to be that of another":        {far, false, "operator", "team", false},
		"one of the same namespace is not asked":       {far, false, "operator", "tiny", true},
		"another cluster, with a store that is shared": {"else", true, "operator", "team", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ownStore, farStore, hostile := newStore(), newStore(), newStore()

			first := provider("first", "", "")
			second := provider("second", "", "second")
			shared := ownStore

			if c.other != "" {
				first = provider("first", "", "first")
				first.SetNamespace(c.other)

				shared = farStore
			}

			if !c.shares {
				shared = hostile
			}

			there := secret("first", kubeConfig(farStore.server(t, far)))
			there.Namespace = "team"

			if c.other != "" {
				there.Namespace = c.other
			}

			pool, _ := newPool(t, []client.Object{there, secret("second", kubeConfig(shared.server(t, c.claims)))}...)
			pool.Local, pool.Namespace = connect(t, ownStore.server(t, own), nil), c.namespace

			for _, p := range []v1alpha2.Provider{first, second} {
				target(t, pool, p)
			}

			g.Expect(pool.Identity(first) == pool.Identity(second)).To(Equal(c.want))
			g.Expect(ownStore.objects).To(BeEmpty(), "what was written is deleted")
			g.Expect(farStore.objects).To(BeEmpty())

			written := hostile.written + ownStore.written + farStore.written

			target(t, pool, second)
			g.Expect(hostile.written+ownStore.written+farStore.written).To(Equal(written), "it is not asked again")
		})
	}
}

// TestRecordedIdentity checks that the UID in a status, which a remote server has claimed, is believed as little.
func TestRecordedIdentity(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPool(t)
	local := provider("a", "", "")
	target(t, pool, local)

	claims := func(name, namespace string) v1alpha2.Provider {
		p := provider(name, "", "there")
		p.SetNamespace(namespace)
		p.GetStatus().Release = &v1alpha2.ReleaseStatus{ClusterUID: "local"}

		return p
	}

	g.Expect(pool.Identity(local)).To(Equal("local"))
	g.Expect(pool.Identity(claims("b", "tiny"))).NotTo(Equal("local"))
	g.Expect(pool.Identity(claims("b", "tiny"))).To(Equal(pool.Identity(claims("c", "tiny"))))
	g.Expect(pool.Identity(claims("b", "tiny"))).NotTo(Equal(pool.Identity(claims("c", "team"))))
}
