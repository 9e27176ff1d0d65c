package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestGuardedRedirects(t *testing.T) {
	var asked atomic.Int64

	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fine(w, r)
	}))
	t.Cleanup(inner.Close)

	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	guard := &Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

	for name, c := range map[string]struct {
		guard   *Guard
		to      string
		message string
	}{
		"to the same host":          {guard, inner.URL, ""},
		"to another name":           {guard, "http://localhost:" + port, "redirects to another server, localhost:" + port},
		"to a refused address":      {&Guard{}, inner.URL, "127.0.0.1 is a loopback address"},
		"to another without guards": {nil, "http://localhost:" + port, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := asked.Load()
			server := httptest.NewServer(http.RedirectHandler(c.to, http.StatusFound))
			t.Cleanup(server.Close)

			client, err := New(Credentials{}, c.guard)
			g.Expect(err).NotTo(HaveOccurred())

			started := time.Now()
			_, err = client.Get(t.Context(), Request{URL: server.URL, Limit: limit})

			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			g.Expect(time.Since(started)).To(BeNumerically("<", client.pause), "it is not tried again")
			g.Expect(asked.Load()).To(Equal(before))
		})
	}
}
