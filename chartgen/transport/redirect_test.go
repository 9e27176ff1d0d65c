package transport

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/registry/remote/auth"
)

func TestRedirects(t *testing.T) {
	const release = "https://git.example.com/x"

	listed := []string{"git.example.com", "github.com", "ghcr.io", "*.storage.example.com"}

	for name, c := range map[string]struct {
		hosts    []string
		from, to string
		message  string
		keeps    bool // the credentials
	}{
		"to the same host":               {listed, release, "https://git.example.com/y", "", true},
		"to another port":                {listed, release, "https://git.example.com:8443/y", "", false},
		"to a subdomain":                 {nil, release, "https://evil.git.example.com/y", "", false},
		"to any host, if none is listed": {nil, release, "https://example.org/y", "", false},
		"to a listed host":               {listed, release, "https://s3.storage.example.com/y", "", false},
		"to another host": {
			listed, release, "https://example.org/y",
			"redirects to example.org, which the operator's flag --allowed-source-hosts does not list", false,
		},
		"without TLS":        {nil, release, "http://git.example.com/y", "from https to http", false},
		"that never had TLS": {nil, "http://git.example.com/x", "http://example.org/y", "", false},
		"to an address that is refused": {
			nil, release, "https://169.254.169.254/y", "169.254.169.254 is a link-local address", false,
		},
		"to GitHub's downloads": {
			listed, "https://github.com/x", "https://release-assets.githubusercontent.com/y", "", false,
		},
		"to GitHub's packages": {
			listed, "https://ghcr.io/v2/x/blobs/sha256:0", "https://pkg-containers.githubusercontent.com/y", "", false,
		},
		"to GitHub's downloads, from another server": {
			listed, release, "https://objects.githubusercontent.com/y", "redirects to objects.githubusercontent.com", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from, to := requestOf(t, c.from), requestOf(t, c.to)

			err := (&Guard{Hosts: c.hosts}).checkRedirect(to, []*http.Request{from})
			if c.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.message)))
				g.Expect(Is(err, Refused)).To(BeTrue())

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(to.Header.Get("Authorization") != "").To(Equal(c.keeps))
		})
	}
}

// requestOf returns a request with credentials.
func requestOf(t *testing.T, address string) *http.Request {
	t.Helper()

	u, err := url.Parse(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Authorization": {"Bearer secret"}}}
}

func TestRefusedRedirect(t *testing.T) {
	g := NewWithT(t)
	asked := 0
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(inner.Close)

	server := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	t.Cleanup(server.Close)

	guard := &Guard{
		Addresses:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		APIServers: []string{inner.Listener.Addr().String()},
	}

	_, err := newClient(t, Options{Guard: guard}, auth.EmptyCredential).
		Get(t.Context(), Request{URL: server.URL, Limit: limit})
	g.Expect(err).To(MatchError(And(HavePrefix(server.URL+": "), ContainSubstring("is the API server's address"))))
	g.Expect(asked).To(BeZero())
}
