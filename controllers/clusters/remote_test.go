package clusters_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/seats"
)

func TestSilentCluster(t *testing.T) {
	g := NewWithT(t)
	there := newSwitched(t)
	there.answer(0)

	pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))

	_, err := pool.For(t.Context(), provider("a", "", "there"))
	unreachable := problem.Of(err)
	g.Expect(unreachable).To(HaveField("Reason", v1alpha2.ClusterUnreachableReason))
	g.Expect(err).To(MatchError(ContainSubstring(
		there.URL + " of spec.kubeConfig cannot be reached: no response within 10s")))
	g.Expect(unreachable.Until).To(BeTemporally("~", time.Now(), time.Second), "it is asked again soon")

	// Many resources ask while the server is silent, and none of them waits for it.
	many := func() {
		before := there.requests()
		begin := time.Now()

		for range 100 {
			_, err := pool.For(t.Context(), provider("b", "", "there"))
			g.Expect(err).To(BeAssignableToTypeOf(unreachable))
		}

		g.Expect(time.Since(begin)).To(BeNumerically("<", 10*time.Second), "the time that one of them would wait")
		g.Expect(there.requests()).To(Equal(before))
	}
	many()

	time.Sleep(time.Until(unreachable.Until))

	again, ended := there.requests()+1, make(chan error)

	go func() {
		_, err := pool.For(t.Context(), provider("a", "", "there"))
		ended <- err
	}()

	g.Eventually(there.requests).Should(Equal(again))
	many()

	there.answer(http.StatusOK)
	g.Eventually(ended).Should(Receive(BeNil()))
	target(t, pool, provider("b", "", "there"))
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

	g.Eventually(there.requests).Should(Equal(1))
	g.Consistently(there.requests, "200ms").Should(Equal(1), "the others wait for its answer")
	there.answer(http.StatusOK)

	for range 5 {
		g.Eventually(results, "20s").Should(Receive(BeNil()))
	}

	g.Expect(there.requests()).To(Equal(1), "one answer is enough")
}

// Silent clusters of a namespace take no more than their seats, and one that has answered needs none.
func TestManySilentClusters(t *testing.T) {
	g := NewWithT(t)
	good := provider("good", "", "good")

	secrets := []client.Object{secret("good", kubeConfig(serve(t, "good")))}
	servers := map[string]*switched{}

	for i := range 10 {
		name := fmt.Sprint("silent-", i)
		servers[name] = newSwitched(t)
		servers[name].answer(0)
		secrets = append(secrets, secret(name, kubeConfig(servers[name].URL)))
	}

	pool, _ := newPool(t, secrets...)
	pool.Seats = seats.OfKinds(10)

	_, err := pool.For(t.Context(), good)
	g.Expect(err).NotTo(HaveOccurred())

	results := make(chan error, len(servers))

	for name := range servers {
		go func() {
			_, err := pool.For(t.Context(), provider(name, "", name))
			results <- err
		}()
	}

	for range len(servers) - 3 {
		g.Eventually(results, "5s").Should(Receive(HaveField("Reason", v1alpha2.ProgressingReason)))
	}

	_, err = pool.For(t.Context(), good)
	g.Expect(err).NotTo(HaveOccurred())

	for _, server := range servers {
		server.answer(http.StatusOK)
	}

	for range 3 {
		g.Eventually(results, "5s").Should(Receive(BeNil()))
	}

	for name := range servers {
		target(t, pool, provider(name, "", name))
	}
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
	asked  int
}

func newSwitched(t *testing.T) *switched {
	t.Helper()

	s := &switched{status: http.StatusOK, uid: "there"}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		case status == 0: // the client has given up
		case status == http.StatusOK && strings.HasSuffix(r.URL.Path, "/kube-system"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w,
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, uid)
		default:
			w.WriteHeader(status)
		}
	}))
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

// requests returns the number of requests so far.
func (s *switched) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.asked
}

func TestLossOfCluster(t *testing.T) {
	for status, reason := range map[int]string{
		http.StatusUnauthorized:        "it rejects the credentials (401 Unauthorized)",
		http.StatusInternalServerError: "its responses are not those of an API server",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			g := NewWithT(t)
			there := newSwitched(t)
			pool, _ := newPool(t, secret("there", kubeConfig(there.URL)))

			before := target(t, pool, provider("a", "", "there"))

			there.answer(status)
			g.Eventually(func() error {
				_, err := pool.For(t.Context(), provider("a", "", "there"))
				return err
			}, "20s").Should(And(
				HaveField("Reason", v1alpha2.ClusterUnreachableReason), MatchError(ContainSubstring(reason))))

			deleted := provider("b", "", "there")
			deleted.SetDeletionTimestamp(new(metav1.Now()))

			_, err := pool.For(t.Context(), deleted)
			g.Expect(err).To(MatchError(HaveSuffix(
				", or, if that cluster no longer exists, remove the finalizer " + v1alpha2.Finalizer + " from this resource")))

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
