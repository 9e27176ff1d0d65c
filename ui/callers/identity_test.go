package callers

import (
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// TestIdentity checks who is let in, and that headers which prove nothing have no effect.
func TestIdentity(t *testing.T) {
	basic := http.Header{"Authorization": {"Basic amFuZTpqYW5l"}}
	two := http.Header{"Authorization": {"Bearer jane-token", "Bearer proxy-token"}}
	spoofed := http.Header{}

	for _, name := range []string{
		"X-Remote-User", "X-Forwarded-User", "X-Forwarded-Email", "X-Auth-Request-User", "Impersonate-User", "Cookie",
	} {
		spoofed.Set(name, "jane")
	}

	for name, c := range map[string]struct {
		header http.Header
		code   int
		says   string
	}{
		"a token":              {header("jane-token"), http.StatusOK, "<strong>jane</strong>"},
		"no token":             {http.Header{}, http.StatusUnauthorized, "has no bearer token"},
		"an empty token":       {header(""), http.StatusUnauthorized, "has no bearer token"},
		"a password":           {basic, http.StatusUnauthorized, "has no bearer token"},
		"two tokens":           {two, http.StatusUnauthorized, "has no bearer token"},
		"headers of any proxy": {spoofed, http.StatusUnauthorized, "has no bearer token"},
		"an expired token":     {header("old-token"), http.StatusUnauthorized, "it may have expired"},
		"the anonymous user":   {header("none-token"), http.StatusUnauthorized, "The anonymous user"},
		"a proxy for a user": {
			header("proxy-token", "Impersonate-User", "jane"), http.StatusOK, "<strong>jane</strong>",
		},
		"a proxy for a group that it may not impersonate": {
			header("proxy-token", "Impersonate-User", "jane", "Impersonate-Group", "system:masters"),
			http.StatusForbidden, "does not accept who the request is from",
		},
		"a group without a user": {
			header("jane-token", "Impersonate-Group", "system:masters"), http.StatusForbidden, "does not accept",
		},
		"a user for another one": {
			header("jane-token", "Impersonate-User", "root"), http.StatusForbidden, "does not accept",
		},
		"a proxy for the anonymous user": {
			header("proxy-token", "Impersonate-User", "system:anonymous"), http.StatusUnauthorized, "The anonymous user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := newCluster(t)
			cluster.may("jane")
			s := cluster.serve(t, cluster.access(t))

			for _, path := range []string{"/", "/providers/InfrastructureProvider/capa-system/aws", "/events"} {
				response := s.open(t, path, c.header) //nolint:bodyclose // it is closed after the test
				g.Expect(response.StatusCode).To(Equal(c.code), path)
				g.Expect(response.Header).NotTo(HaveKey("Set-Cookie"))
				g.Expect(response.Header.Get("Content-Security-Policy")).To(HavePrefix("default-src 'none';"))

				if path != "/events" {
					body, err := io.ReadAll(response.Body)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(string(body)).To(ContainSubstring(c.says))
				}
			}

			for _, sent := range cluster.headers {
				g.Expect(sent.Get("Authorization")).NotTo(ContainSubstring("operator-token"), "reviews are the caller's own")
				g.Expect(sent).NotTo(Or(HaveKey("Cookie"), HaveKey("X-Remote-User")))
			}
		})
	}
}

// TestUnavailable checks that nothing is shown, not even an address, while the API server cannot be asked.
func TestUnavailable(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	s := cluster.serve(t, cluster.access(t))
	cluster.change(func() { cluster.broken = true })

	code, body := s.get(t, "/", header("jane-token"))
	g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(body).To(ContainSubstring("cannot be asked who you are"))
	g.Expect(body).NotTo(Or(ContainSubstring("127.0.0.1"), ContainSubstring("infrastructure-aws")))
}
