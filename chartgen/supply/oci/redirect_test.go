package oci

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

func TestRedirects(t *testing.T) {
	const (
		blob     = "https://registry.example.com/v2/a/blobs/sha256:0"
		manifest = "https://registry.example.com/v2/a/manifests/v1"
	)

	for name, c := range map[string]struct {
		from, to string
		message  string
		keeps    bool
	}{
		"a blob in another storage":     {blob, "https://storage.example.org/x", "", false},
		"a blob without TLS":            {blob, "http://registry.example.com/x", "from https to http", false},
		"a manifest elsewhere":          {manifest, "https://example.org/x", "to another server, example.org", false},
		"a manifest on the same server": {manifest, "https://registry.example.com/x", "", true},
		"another port":                  {manifest, "https://registry.example.com:8443/x", "", false},
		"a subdomain":                   {manifest, "https://evil.registry.example.com/x", "", false},
		"a blob at a refused address":   {blob, "https://169.254.169.254/x", "a link-local address", false},
		"Kubernetes' registry": {
			"https://registry.k8s.io/v2/a/manifests/v1", "https://europe-west4-docker.pkg.dev/v2/a/manifests/v1", "", false,
		},
		"a plain registry that redirects a blob": {
			"http://registry.example.com/v2/a/blobs/sha256:0", "http://other.example.org/x", "to another server", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from, to := request(t, c.from), request(t, c.to)

			err := web.CheckRedirect(&web.Guard{}, isBlob)(to, []*http.Request{from})
			if c.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.message)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(to.Header.Get("Authorization") != "").To(Equal(c.keeps))
		})
	}
}

func TestUnguardedRedirects(t *testing.T) {
	g := NewWithT(t)
	to := request(t, "https://other.example.org/x")

	from := request(t, "https://registry.example.com/v2/a/manifests/v1")

	g.Expect(web.CheckRedirect(nil, isBlob)(to, []*http.Request{from})).To(Succeed())
	g.Expect(to.Header).NotTo(HaveKey("Authorization"))
}

// request returns a request with credentials.
func request(t *testing.T, address string) *http.Request {
	t.Helper()

	u, err := url.Parse(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Authorization": {"Bearer secret"}}}
}

func TestRefusedAddress(t *testing.T) {
	g := NewWithT(t)
	c := client(t, Options{Guard: &web.Guard{}})

	_, err := c.Resolve(t.Context(), parse(t, "http://127.0.0.1:1/a:v1"))
	g.Expect(IsReason(err, Denied)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring("127.0.0.1 is a loopback address (127.0.0.1)")))
}
