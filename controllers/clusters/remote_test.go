package clusters_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
)

// mute is an API server that accepts connections and answers only once it may.
type mute struct {
	address string

	mu       sync.Mutex
	accepted int
	speaks   chan struct{}
}

func newMute(t *testing.T) *mute {
	t.Helper()

	m := &mute{speaks: make(chan struct{})}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	server := &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.mu.Lock()
			m.accepted++
			m.mu.Unlock()

			select {
			case <-m.speaks:
				http.NotFound(w, r)
			case <-r.Context().Done():
			}
		})}}
	server.Start()
	t.Cleanup(server.Close)

	m.address = server.URL

	return m
}

// requests returns how many requests arrived since the last call.
func (m *mute) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()

	n := m.accepted
	m.accepted = 0

	return n
}

// impatient makes the limits of a pool small, and allows plain HTTP. It returns the labels of the
// providers that are woken.
func impatient(pool *clusters.Pool) <-chan string {
	woken := make(chan string, 100)

	pool.KubeConfig.InsecureTLS = true
	pool.Limits = clusters.Limits{
		Timeout: 200 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond,
		MinProbe: 50 * time.Millisecond, MaxProbe: 100 * time.Millisecond,
	}
	pool.Wake = func(label, _ string, _ time.Duration) { woken <- label }

	return woken
}

// ask sends a request to the cluster while it is connected to.
func ask(pool *clusters.Pool) {
	watch := pool.Watch
	pool.Watch = func(ctx context.Context, cluster *clusters.Cluster) error {
		_, err := cluster.OwnTarget().Client.RESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
		if failure := (*url.Error)(nil); errors.As(err, &failure) {
			return err
		}

		return watch(ctx, cluster)
	}
}

func TestSilentCluster(t *testing.T) {
	g := NewWithT(t)
	there := newMute(t)
	pool, _, made := newPool(t, secret("there", kubeConfig(there.address)))
	woken := impatient(pool)
	ask(pool)

	var unreachable *clusters.UnreachableError

	_, err := pool.For(t.Context(), provider("a", "", "there"))
	g.Expect(err).To(BeAssignableToTypeOf(unreachable))
	g.Expect(err).To(MatchError(ContainSubstring(there.address + " of spec.kubeConfig cannot be reached: no response")))

	g.Eventually(woken).Should(Receive(Equal("infrastructure-a")), "to report it")

	// Many resources ask while the server is silent, and none of them is waited for.
	there.requests()

	begin := time.Now()

	for range 100 {
		_, err := pool.For(t.Context(), provider("b", "", "there"))
		g.Expect(err).To(BeAssignableToTypeOf(unreachable))
	}

	g.Expect(time.Since(begin)).To(BeNumerically("<", time.Second))
	g.Expect(there.requests()).To(BeNumerically("<=", 20), "only the probe asks")

	close(there.speaks)
	g.Eventually(woken).Should(Receive())
	g.Expect(target(t, pool, provider("a", "", "there")).Remote).To(BeTrue())
	g.Expect(made.open()).To(Equal([]bool{true}))
}

func TestCallerOfSlowConnection(t *testing.T) {
	g := NewWithT(t)
	pool, _, made := newPool(t, secret("there", kubeConfig(serve(t, "there"))))
	woken := impatient(pool)
	answer := make(chan struct{})
	pool.Watch = func(ctx context.Context, cluster *clusters.Cluster) error {
		<-answer
		return made.watch(ctx, cluster)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, err := pool.For(ctx, provider("a", "", "there"))
	g.Expect(err).To(MatchError(ContainSubstring(
		" of spec.kubeConfig cannot be reached: no response yet")))

	close(answer)
	g.Eventually(woken).Should(Receive(Equal("infrastructure-a")), "it is connected after all")
}

func TestDeletionFromUnreachableCluster(t *testing.T) {
	g := NewWithT(t)
	pool, _, _ := newPool(t, secret("there", kubeConfig(newMute(t).address)))
	impatient(pool)
	ask(pool)

	deleted := provider("a", "", "there")
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)

	_, err := pool.For(t.Context(), deleted)
	g.Expect(err).To(MatchError(HaveSuffix(
		", or, if that cluster no longer exists, remove the finalizer " + v1alpha2.Finalizer + " from this resource")))
}

func TestImpersonationInKubeConfig(t *testing.T) {
	g := NewWithT(t)
	text := strings.Replace(kubeConfig(serve(t, "there")), "token: hunter2", "token: hunter2, as: alice", 1)
	pool, _, _ := newPool(t, secret("there", text))

	g.Expect(target(t, pool, provider("a", "", "there")).Account).To(BeEmpty())

	_, err := pool.For(t.Context(), provider("b", "installer", "there"))
	g.Expect(err).To(MatchError(ContainSubstring("as cannot be combined with a ServiceAccount to impersonate")))
}
