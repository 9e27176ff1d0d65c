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

	g.Expect(access.open).To(BeEmpty())
}
