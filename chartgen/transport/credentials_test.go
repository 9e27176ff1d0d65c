package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// recorder starts a server that records the headers of the last request.
func recorder(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, shown *http.Header) {
	t.Helper()

	shown = &http.Header{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*shown = r.Header.Clone()
		handler(w, r)
	}))
	t.Cleanup(server.Close)

	return server, shown
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

func TestCredentialsStayWithOrigin(t *testing.T) {
	for name, test := range map[string]struct {
		login auth.Credential
		want  string
	}{
		"a token":               {auth.Credential{AccessToken: "t0ken"}, "Bearer t0ken"},
		"a name and a password": {auth.Credential{Username: "me", Password: "pass"}, "Basic bWU6cGFzcw=="},
		"both":                  {auth.Credential{Username: "me", Password: "pass", AccessToken: "t0ken"}, "Bearer t0ken"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			other, shownOther := recorder(t, fine)
			own, shownOwn := recorder(
				t,
				func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/cdn", http.StatusFound) },
			)
			_, err := newClient(t, Options{}, test.login, own.URL).Get(t.Context(), Request{URL: own.URL, Limit: limit})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(shownOwn.Get("Authorization")).To(Equal(test.want))
			g.Expect(*shownOther).NotTo(HaveKey("Authorization"))

			_, err = newClient(t, Options{}, test.login, own.URL).Get(t.Context(), Request{URL: other.URL, Limit: limit})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*shownOther).NotTo(HaveKey("Authorization"), "even without a redirect")
		})
	}
}

func TestTLS(t *testing.T) {
	g := NewWithT(t)

	var shown atomic.Int64 // client certificates

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Add(int64(len(r.TLS.PeerCertificates)))
		fine(w, r)
	})
	start := func(config *tls.Config, handler http.Handler) *httptest.Server {
		server := httptest.NewUnstartedServer(handler)
		server.TLS = config
		server.Config.ErrorLog = nil
		server.StartTLS()
		t.Cleanup(server.Close)

		return server
	}
	asks := start(&tls.Config{ClientAuth: tls.RequestClientCert}, handler)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: asks.Certificate().Raw})
	get := func(o Options, address string) error {
		_, err := newClient(t, o, auth.EmptyCredential).Get(t.Context(), Request{URL: address, Limit: limit})
		return err
	}
	g.Expect(get(Options{}, asks.URL)).
		To(MatchError(And(ContainSubstring("is not trusted: x509: "), ContainSubstring("as ca.crt"))))
	g.Expect(get(Options{CA: ca}, asks.URL)).To(Succeed())
	g.Expect(shown.Load()).To(BeZero())

	certificate, key := clientCertificate(t)
	g.Expect(get(Options{CA: ca, Certificate: certificate, Key: key}, asks.URL)).To(Succeed())
	g.Expect(shown.Load()).To(Equal(int64(1)))

	redirects := start(nil, http.RedirectHandler(asks.URL, http.StatusFound))
	g.Expect(get(Options{CA: ca, Certificate: certificate, Key: key}, redirects.URL)).To(Succeed())
	g.Expect(shown.Load()).To(Equal(int64(1)), "not presented after a redirect")

	plain := httptest.NewServer(http.HandlerFunc(fine))
	t.Cleanup(plain.Close)
	downgrades := start(nil, http.RedirectHandler(plain.URL, http.StatusFound))
	g.Expect(get(Options{CA: ca}, downgrades.URL)).To(MatchError(ContainSubstring("redirects from https to http")))
}

func TestProxy(t *testing.T) {
	g := NewWithT(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.Header.Get("Authorization")).To(Equal("Bearer secret"), "for the server")

		if r.Header.Get("Proxy-Authorization") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}

		g.Expect(r.URL.String()).To(Equal("http://server.example/file"))
		fine(w, r)
	}))
	t.Cleanup(proxy.Close)
	get := func(proxy string) error {
		login := auth.Credential{AccessToken: "secret"}
		c := newClient(t, Options{Proxy: proxy}, login, "http://server.example")
		_, err := c.Get(t.Context(), Request{URL: "http://server.example/file", Limit: limit})

		return err
	}
	g.Expect(get(strings.Replace(proxy.URL, "://", "://me:pass@", 1))).To(Succeed())
	g.Expect(get(proxy.URL)).To(MatchError(ContainSubstring("the proxy asks for credentials")))
}

// clientCertificate returns a self-signed certificate and its key.
func clientCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())

	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	g.Expect(err).NotTo(HaveOccurred())
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(
		&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8},
	)
}
