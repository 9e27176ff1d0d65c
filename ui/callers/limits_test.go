package callers

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/ui"
)

// TestAnswersExpire checks that an expired token and a removed permission are noticed, and that until then the API
// server is not asked again.
func TestAnswersExpire(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	cluster.may("jane")
	access := cluster.access(t)
	s := cluster.serve(t, access)

	load := func() int {
		code, _ := s.get(t, "/", header("jane-token"))
		return code
	}

	g.Expect(load()).To(Equal(http.StatusOK))

	asked := cluster.requests()
	g.Expect(asked).To(Equal(1+7), "who it is, and a question for each kind of provider")
	g.Expect(load()).To(Equal(http.StatusOK))
	g.Expect(cluster.requests()).To(Equal(asked))

	access.decisions.known.Clear() // as after the time for which answers are used
	cluster.change(func() { clear(cluster.allowed) })
	g.Expect(load()).To(Equal(http.StatusForbidden))

	access.callers.known.Clear()
	cluster.change(func() { clear(cluster.users) })
	g.Expect(load()).To(Equal(http.StatusUnauthorized))
	g.Expect(load()).To(Equal(http.StatusUnauthorized))

	cluster.change(func() { cluster.users["jane-token"] = "jane" })
	cluster.may("jane")
	access.decisions.known.Clear()
	g.Expect(load()).To(Equal(http.StatusOK), "refused tokens are not remembered")
}

// TestShared checks that a page that many open at the same time is read once, even by different users.
func TestShared(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	access := cluster.access(t)
	s := cluster.serve(t, access)

	var (
		open  sync.WaitGroup
		codes [20]int
	)

	load := func(user int) {
		h := header("proxy-token", "Impersonate-User", fmt.Sprintf("user-%d", user))
		codes[user], _ = s.get(t, "/providers/InfrastructureProvider/capa-system/aws", h)
	}

	for user := range codes {
		cluster.may(fmt.Sprintf("user-%d", user))
	}

	load(0)

	alone := cluster.reads
	g.Expect(alone).To(BeNumerically(">", 3))

	for user := range codes {
		open.Go(func() { load(user) })
	}

	open.Wait()
	g.Expect(codes).To(HaveEach(http.StatusOK))
	g.Expect(cluster.reads).To(BeNumerically("<=", 2*alone))
}

// TestAdmission checks that a user cannot use up what is there for all, and that others are not affected.
func TestAdmission(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	access := cluster.access(t)

	admit := func(user string, stream bool) (func(), error) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header = header("proxy-token", "Impersonate-User", user)

		return access.Admit(r, stream)
	}

	for stream, most := range map[bool]int{true: maxStreams, false: maxPages} {
		var releases []func()

		for range most {
			release, err := admit("jane", stream)
			g.Expect(err).NotTo(HaveOccurred())

			releases = append(releases, release)
		}

		_, err := admit("jane", stream)
		refused := new(ui.RefusedError)
		g.Expect(errors.As(err, &refused)).To(BeTrue())
		g.Expect(refused.Code).To(Equal(http.StatusTooManyRequests))

		other, err := admit("john", stream)
		g.Expect(err).NotTo(HaveOccurred())
		other()
		releases[0]()

		releases[0], err = admit("jane", stream)
		g.Expect(err).NotTo(HaveOccurred())

		for _, release := range releases {
			release()
		}
	}

	for i := range maxPages {
		_, err := admit(fmt.Sprintf("system:serviceaccount:tiny:account-%d", i), false)
		g.Expect(err).NotTo(HaveOccurred())
	}

	_, err := admit("system:serviceaccount:tiny:another", false)
	g.Expect(err).To(MatchError(ContainSubstring("Too many pages")), "accounts of a namespace count as one user")

	other, err := admit("system:serviceaccount:team:account", false)
	g.Expect(err).NotTo(HaveOccurred())
	other()
	g.Expect(access.open).To(HaveLen(1))
}

// TestUnknownTokens checks that who sends tokens that the API server does not know uses up what its own address may.
func TestUnknownTokens(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	access := cluster.access(t)

	send := func(address, token string) error {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr, r.Header = address+":1234", header(token)

		leave, err := access.Admit(r, false)
		if err == nil {
			leave()
		}

		return err
	}

	g.Expect(send("192.0.2.1", "jane-token")).To(Succeed())

	var sent sync.WaitGroup

	cluster.mu.Lock() // it answers to none

	answer := sync.OnceFunc(cluster.mu.Unlock)
	defer answer()

	for i := range maxUnknown {
		sent.Go(func() { _ = send("192.0.2.1", fmt.Sprint("unknown-", i)) })
	}

	g.Eventually(func() int {
		access.mu.Lock()
		defer access.mu.Unlock()

		return access.open[use{"192.0.2.1", unknown}]
	}).Should(Equal(maxUnknown))

	refused := new(ui.RefusedError)
	g.Expect(errors.As(send("192.0.2.1", "one-more"), &refused)).To(BeTrue())
	g.Expect(refused.Code).To(Equal(http.StatusTooManyRequests))
	g.Expect(send("192.0.2.1", "jane-token")).To(Succeed(), "she is known")

	answer()
	g.Expect(send("192.0.2.2", "proxy-token")).To(Succeed(), "another address has its own")
	sent.Wait()
	g.Expect(access.open).To(BeEmpty())
}
