package web

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
		credentials Credentials
		want        string
	}{
		"a token":               {Credentials{Token: "t0ken"}, "Bearer t0ken"},
		"a name and a password": {Credentials{Username: "me", Password: "pass"}, "Basic bWU6cGFzcw=="},
		"both":                  {Credentials{Username: "me", Password: "pass", Token: "t0ken"}, "Bearer t0ken"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			other, shownOther := recorder(t, fine)
			own, shownOwn := recorder(
				t,
				func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/cdn", http.StatusFound) },
			)
			_, err := newClient(t, test.credentials, own.URL).Get(t.Context(), Request{URL: own.URL, Limit: limit})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(shownOwn.Get("Authorization")).To(Equal(test.want))
			g.Expect(*shownOther).NotTo(HaveKey("Authorization"))

			_, err = newClient(t, test.credentials, own.URL).Get(t.Context(), Request{URL: other.URL, Limit: limit})
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
	get := func(c Credentials, address string, origins ...string) error {
		_, err := newClient(t, c, origins...).Get(t.Context(), Request{URL: address, Limit: limit})
		return err
	}
	g.Expect(get(Credentials{}, asks.URL)).
		To(MatchError(And(ContainSubstring("certificate is not trusted"), ContainSubstring("as ca.crt"))))
	g.Expect(get(Credentials{CA: ca}, asks.URL)).To(Succeed())
	g.Expect(shown.Load()).To(BeZero())

	certificate, key := clientCertificate(t)
	g.Expect(get(Credentials{CA: ca, Certificate: certificate, Key: key}, asks.URL, asks.URL)).To(Succeed())
	g.Expect(shown.Load()).To(Equal(int64(1)))

	redirects := start(nil, http.RedirectHandler(asks.URL, http.StatusFound))
	g.Expect(get(Credentials{CA: ca, Certificate: certificate, Key: key}, redirects.URL, redirects.URL)).To(Succeed())
	g.Expect(shown.Load()).To(Equal(int64(1)), "not presented after a redirect")

	plain := httptest.NewServer(http.HandlerFunc(fine))
	t.Cleanup(plain.Close)
	downgrades := start(nil, http.RedirectHandler(plain.URL, http.StatusFound))
	g.Expect(get(Credentials{CA: ca}, downgrades.URL)).To(MatchError(ContainSubstring("redirects from https to http")))

	for _, bad := range []Credentials{
		{CA: []byte("none")},
		{Certificate: certificate},
		{Certificate: []byte("x"), Key: key},
	} {
		_, err := New(bad, nil)
		g.Expect(err).To(BeAssignableToTypeOf(&CredentialsError{}))
		g.Expect(err).To(MatchError(ContainSubstring("PEM")))
	}
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
		c := newClient(t, Credentials{Token: "secret", Proxy: proxy}, "http://server.example")
		_, err := c.Get(t.Context(), Request{URL: "http://server.example/file", Limit: limit})

		return err
	}
	g.Expect(get(strings.Replace(proxy.URL, "://", "://me:pass@", 1))).To(Succeed())
	g.Expect(get(proxy.URL)).To(MatchError(ContainSubstring("the proxy asks for credentials")))

	for _, bad := range []string{
		"proxy.example.com:3128",
		"ftp://me:pass@proxy",
		"http://me:pass@",
		"http://me:pass@ho st",
	} {
		_, err := New(Credentials{Proxy: bad}, nil)
		g.Expect(err).
			To(MatchError(
				And(ContainSubstring("the source's Secret: proxy is not the URL of a proxy"), Not(ContainSubstring("pass"))),
			))
	}
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
