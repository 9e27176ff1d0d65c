package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
)

// impatient makes the limits of a pool small.
func impatient(pool *clusters.Pool) {
	pool.Limits = clusters.Limits{Timeout: 2 * time.Second, ConnectTimeout: 500 * time.Millisecond}
}

func TestSilentCluster(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	there.answer(0)

	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))
	impatient(pool)

	var unreachable *clusters.UnreachableError

	_, err := pool.For(t.Context(), provider("a", "", "there"))
	g.Expect(errors.As(err, &unreachable)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring(
		there.URL + " of spec.kubeConfig cannot be reached: no response within 500ms")))
	g.Expect(unreachable.Until).To(BeTemporally("~", time.Now(), time.Second), "it is asked again soon")

	// Many resources ask while the server is silent, and none of them is waited for.
	_, before := there.count()
	begin := time.Now()

	for range 100 {
		_, err := pool.For(t.Context(), provider("b", "", "there"))
		g.Expect(err).To(BeAssignableToTypeOf(unreachable))
	}

	g.Expect(time.Since(begin)).To(BeNumerically("<", time.Second))

	_, after := there.count()
	g.Expect(after).To(Equal(before))

	there.answer(http.StatusOK)
	g.Eventually(func() error {
		_, err := pool.For(t.Context(), provider("a", "", "there"))
		return err
	}, "20s").Should(Succeed())
}

func TestManyAskAtTheSameTime(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	there.answer(0)

	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))
	results := make(chan error)

	for range 5 {
		go func() {
			_, err := pool.For(t.Context(), provider("a", "", "there"))
			results <- err
		}()
	}

	g.Eventually(func() int { _, requests := there.count(); return requests }).Should(Equal(1))
	there.answer(http.StatusOK)

	for range 5 {
		g.Eventually(results, "20s").Should(Receive(BeNil()))
	}

	_, requests := there.count()
	g.Expect(requests).To(Equal(1), "one answer is enough")
}

func TestCallerOfSlowCluster(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	there.answer(0)

	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))

	go func() { _, _ = pool.For(t.Context(), provider("a", "", "there")) }()

	g.Eventually(func() int { _, requests := there.count(); return requests }).Should(Equal(1))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, err := pool.For(ctx, provider("b", "", "there"))
	g.Expect(err).To(MatchError(ContainSubstring(" of spec.kubeConfig cannot be reached: no response yet")))
	there.answer(http.StatusOK)
}

func TestDeletionFromUnreachableCluster(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	there.answer(0)

	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))
	impatient(pool)

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
	pool, _ := newPool(t, secret("there", text))

	g.Expect(target(t, pool, provider("a", "", "there")).Account).To(BeEmpty())

	_, err := pool.For(t.Context(), provider("b", "installer", "there"))
	g.Expect(err).To(MatchError(ContainSubstring("as cannot be combined with a ServiceAccount to impersonate")))
}

// switched is an API server that can stop to answer, or to accept credentials, while its connections stay.
type switched struct {
	*httptest.Server

	mu     sync.Mutex
	status int // 0 to answer nothing
	uid    string
	open   map[net.Conn]bool
	asked  int
}

func newSwitched(t *testing.T) *switched {
	t.Helper()

	s := &switched{status: http.StatusOK, uid: "there", open: map[net.Conn]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		status, uid := s.status, s.uid
		s.asked++
		s.mu.Unlock()

		for status == 0 && r.Context().Err() == nil {
			time.Sleep(time.Millisecond) // until the test makes it answer, or the client gives up

			s.mu.Lock()
			status = s.status
			s.mu.Unlock()
		}

		switch {
		case status == http.StatusOK && strings.HasSuffix(r.URL.Path, "/kube-system"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w,
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, uid)
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

// become makes the server that of another cluster.
func (s *switched) become(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.uid = uid
}

// count returns the numbers of open connections and of requests so far.
func (s *switched) count() (connections, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.open), s.asked
}

func TestLossOfCluster(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		reason string
	}{
		"that answers nothing any more":  {0, "no response within 500ms"},
		"whose credentials have expired": {http.StatusUnauthorized, "it rejects the credentials (401 Unauthorized)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			there := newSwitched(t)
			pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))
			impatient(pool)

			before := target(t, pool, provider("a", "", "there"))

			there.answer(c.status)
			g.Eventually(func() error {
				_, err := pool.For(t.Context(), provider("a", "", "there"))
				return err
			}, "20s").Should(And(
				BeAssignableToTypeOf(&clusters.UnreachableError{}), MatchError(ContainSubstring(c.reason))))

			there.answer(http.StatusOK)
			g.Eventually(func() (*clusters.Target, error) {
				return pool.For(t.Context(), provider("a", "", "there"))
			}, "20s").Should(BeIdenticalTo(before), "what is known of the cluster is not lost")
		})
	}
}

func TestAnotherClusterAtTheSameAddress(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))
	before := target(t, pool, provider("a", "", "there"))
	g.Expect(before.ClusterUID()).To(BeEquivalentTo("there"))

	there.become("another")
	g.Eventually(func() types.UID { return target(t, pool, provider("a", "", "there")).ClusterUID() }, "20s").
		Should(BeEquivalentTo("another"))
	g.Expect(target(t, pool, provider("a", "", "there"))).NotTo(BeIdenticalTo(before), "nothing is known of it")
}

func TestForgottenClusterIsNotCalled(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))
	p := provider("a", "", "there")

	// The clients of a target have connections of their own.
	found := target(t, pool, p)
	_, err := found.Releases.Observe(t.Context(), types.NamespacedName{Namespace: "tiny", Name: "a"})
	g.Expect(err).To(HaveOccurred(), "the answer is empty")

	pool.Forget(p)
	g.Eventually(func() int { connections, _ := there.count(); return connections }, "20s").Should(BeZero())

	_, before := there.count()
	_, err = found.Releases.Observe(t.Context(), types.NamespacedName{Namespace: "tiny", Name: "a"})
	g.Expect(err).To(HaveOccurred())

	_, after := there.count()
	g.Expect(after).To(Equal(before))
}
