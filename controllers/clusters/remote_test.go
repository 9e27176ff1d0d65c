package clusters_test

import (
	"context"
	"errors"
	"io"
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
	"k8s.io/apimachinery/pkg/types"

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
		MinProbe: 50 * time.Millisecond, MaxProbe: 100 * time.Millisecond, Idle: 200 * time.Millisecond,
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

// switched is an API server that can stop to answer, or to accept credentials, while its connections stay.
type switched struct {
	*httptest.Server

	mu     sync.Mutex
	status int // 0 to answer nothing
	open   map[net.Conn]bool
	asked  int
}

func newSwitched(t *testing.T) *switched {
	t.Helper()

	s := &switched{status: http.StatusOK, open: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		status := s.status
		s.asked++
		s.mu.Unlock()

		switch {
		case status == 0:
			<-r.Context().Done()
		case status == http.StatusOK && strings.HasSuffix(r.URL.Path, "/kube-system"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"there"}}`)
		default:
			w.WriteHeader(status)
		}
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()

		s.open[c] = true
		if state == http.StateClosed {
			delete(s.open, c)
		}
	}
	s.Start()
	t.Cleanup(s.Close)

	return s
}

// answer makes the server answer with a status, or nothing if that is 0.
func (s *switched) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.status = status
}

// count returns the numbers of open connections and of requests so far.
func (s *switched) count() (connections, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.open), s.asked
}

// patient is impatient, but gives the server the time that a busy machine needs.
func patient(pool *clusters.Pool) <-chan string {
	woken := impatient(pool)
	pool.Limits.Timeout, pool.Limits.ProbeTimeout = 2*time.Second, 2*time.Second

	return woken
}

// Nothing asks the server here but the pool itself.
func TestLossOfIdleCluster(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		reason string
	}{
		"that answers nothing any more":  {0, "no response within 2s"},
		"whose credentials have expired": {http.StatusUnauthorized, "it rejects the credentials (401 Unauthorized)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			there := newSwitched(t)
			pool, _, _ := newPool(t, secret("there", kubeConfig(there.URL)))
			woken := patient(pool)
			target(t, pool, provider("a", "", "there"))
			g.Consistently(woken, "500ms").ShouldNot(Receive(), "it answers")

			there.answer(c.status)
			g.Eventually(woken, "20s").Should(Receive(Equal("infrastructure-a")))

			_, err := pool.For(t.Context(), provider("a", "", "there"))
			g.Expect(err).To(BeAssignableToTypeOf(&clusters.UnreachableError{}))
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))

			there.answer(http.StatusOK)
			g.Eventually(woken, "20s").Should(Receive(Equal("infrastructure-a")))
			target(t, pool, provider("a", "", "there"))
		})
	}
}

func TestForgottenClusterIsNotCalled(t *testing.T) {
	for name, status := range map[string]int{"that answers": http.StatusOK, "that answers nothing": 0} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			there := newSwitched(t)
			pool, _, _ := newPool(t, secret("there", kubeConfig(there.URL)))
			woken := patient(pool)
			p := provider("a", "", "there")

			// The clients of a target have connections of their own.
			_, err := target(t, pool, p).Releases.Observe(t.Context(), types.NamespacedName{Namespace: "tiny", Name: "a"})
			g.Expect(err).To(HaveOccurred(), "the answer is empty")

			there.answer(status)

			if status == 0 {
				g.Eventually(woken, "20s").Should(Receive(), "it is probed from now on")
			}

			pool.Forget(p)

			g.Eventually(func() int { connections, _ := there.count(); return connections }, "20s").Should(BeZero())

			_, before := there.count()
			g.Consistently(func() int { _, requests := there.count(); return requests }, "500ms").Should(Equal(before))
		})
	}
}
