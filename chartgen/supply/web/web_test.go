package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const limit = 1 << 20

// newClient returns a client with short timeouts.
func newClient(t *testing.T, credentials Credentials, origins ...string) *Client {
	t.Helper()

	c, err := New(credentials, origins...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	c.pause = time.Millisecond
	c.timeout = 3 * time.Second

	return c
}

// times answers the first n requests with a handler and all others with "fine".
func times(n int64, answer http.HandlerFunc) http.HandlerFunc {
	var count atomic.Int64

	return func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) <= n {
			answer(w, r)
			return
		}

		_, _ = io.WriteString(w, "fine")
	}
}

// answer returns a handler that responds with a status and headers, each "Name: value".
func answer(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}

		w.WriteHeader(status)
	}
}

// cut announces more than it sends, then closes the connection.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, "half")
	hangUp(w)
}

func hangUp(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// endless sends data without end, as fast as the client reads.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := bytes.Repeat([]byte("a: b\n"), 1<<12)
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// bomb returns a handler whose response is a gigabyte after decompression.
func bomb() http.HandlerFunc {
	var packed bytes.Buffer

	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)

	block := make([]byte, 1<<20)
	for range 1 << 10 {
		_, _ = z.Write(block)
	}

	_ = z.Close()

	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

func plainAsGzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "this is plain text")
}

// slow sends a byte every 20 milliseconds until the client leaves.
func slow(w http.ResponseWriter, r *http.Request) {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}
	}
}

func TestGet(t *testing.T) {
	hour := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	for name, test := range map[string]struct {
		handler  http.HandlerFunc
		body     string
		err      any // the kind of error
		message  string
		requests int64
	}{
		"success":                      {handler: times(0, nil), body: "fine", requests: 1},
		"rate limit that ends at once": {handler: times(2, answer(429, "Retry-After: 0")), body: "fine", requests: 3},
		"rate limit of an hour": {
			handler:  answer(429, "Retry-After: 3600"),
			err:      &RateLimitError{},
			message:  "accepts no more requests from here until",
			requests: 1,
		},
		"rate limit until a date": {
			handler:  answer(429, "Retry-After: "+time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)),
			err:      &RateLimitError{},
			message:  "until",
			requests: 1,
		},
		"rate limit of unknown length": {
			handler:  answer(429),
			err:      &RateLimitError{},
			message:  "most servers accept more with a token",
			requests: 1,
		},
		"GitHub's primary rate limit": {
			handler:  answer(403, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: "+hour),
			err:      &RateLimitError{},
			message:  "until",
			requests: 1,
		},
		"GitHub's secondary rate limit": {
			handler:  answer(403, "Retry-After: 60"),
			err:      &RateLimitError{},
			message:  "until",
			requests: 1,
		},
		"maintenance": {
			handler:  answer(503, "Retry-After: 600"),
			err:      &RateLimitError{},
			message:  "until",
			requests: 1,
		},
		"temporary server error": {handler: times(3, answer(502)), body: "fine", requests: 4},
		"permanent server error": {
			handler:  answer(500),
			err:      &StatusError{},
			message:  "answers 500 Internal Server Error: the server has a problem; the request will be retried",
			requests: 4,
		},
		"connection cut once": {handler: times(1, cut), body: "fine", requests: 2},
		"connection always cut": {
			handler:  cut,
			err:      &UnreachableError{},
			message:  "unexpected EOF; check that the server runs",
			requests: 4,
		},
		"no response": {
			handler:  func(w http.ResponseWriter, _ *http.Request) { hangUp(w) },
			err:      &UnreachableError{},
			message:  "EOF; check that",
			requests: 4,
		},
		"endless slow body": {
			handler:  slow,
			err:      &UnreachableError{},
			message:  "did not start, or did not end, in time",
			requests: 1,
		},
		"endless fast body": {
			handler:  endless,
			err:      &ContentError{},
			message:  "is larger than 1024 KiB",
			requests: 1,
		},
		"large Content-Length": {
			handler:  answer(200, "Content-Length: 2147483648"),
			err:      &ContentError{},
			message:  "is larger than 1024 KiB",
			requests: 1,
		},
		"compression bomb": {
			handler:  bomb(),
			err:      &ContentError{},
			message:  "is larger than 1024 KiB",
			requests: 1,
		},
		"invalid gzip": {
			handler:  plainAsGzip,
			err:      &UnreachableError{},
			message:  "gzip: invalid header",
			requests: 4,
		},
		"missing file": {
			handler:  answer(404),
			err:      &StatusError{},
			message:  "answers 404 Not Found: there is no such version or file; correct spec.version or spec.fetchConfig",
			requests: 1,
		},
		"missing credentials": {
			handler:  answer(401),
			err:      &StatusError{},
			message:  "answers 401 Unauthorized: the credentials are missing, wrong or not sufficient; give a token",
			requests: 1,
		},
		"HTML by its type": {
			handler:  answer(200, "Content-Type: text/html; charset=utf-8"),
			err:      &ContentError{},
			message:  "is a web page instead of the file",
			requests: 1,
		},
		"HTML by its content": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "\ufeff\n <!DOCTYPE html>\n<html>…")
			},
			err:      &ContentError{},
			message:  "is a web page instead of the file",
			requests: 1,
		},
		"redirect loop": {
			handler:  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
			err:      &UnreachableError{},
			message:  "redirects more than 10 times",
			requests: 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			var requests atomic.Int64

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				test.handler(w, r)
			}))
			t.Cleanup(server.Close)
			res, err := newClient(
				t,
				Credentials{},
			).Get(t.Context(), Request{URL: server.URL + "/file?secret=hush", Limit: limit})

			g.Expect(requests.Load()).To(Equal(test.requests))

			if test.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(res.Body)).To(Equal(test.body))

				return
			}

			g.Expect(err).To(BeAssignableToTypeOf(test.err))
			g.Expect(err).
				To(MatchError(
					And(ContainSubstring(test.message), ContainSubstring(server.URL+"/file"), Not(ContainSubstring("hush"))),
				))
		})
	}
}

func TestGetBoundsMemory(t *testing.T) {
	g := NewWithT(t)

	const sixteen = 16 << 20

	for name, handler := range map[string]http.HandlerFunc{"endless": endless, "bomb": bomb()} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)

		var before, after runtime.MemStats

		runtime.GC()
		runtime.ReadMemStats(&before)

		c := newClient(t, Credentials{})
		c.timeout = 20 * time.Second
		_, err := c.Get(t.Context(), Request{URL: server.URL, Limit: sixteen})

		runtime.ReadMemStats(&after)
		g.Expect(err).To(BeAssignableToTypeOf(&ContentError{}))
		t.Logf("%s: %d MiB allocated for a limit of %d MiB", name, (after.TotalAlloc-before.TotalAlloc)>>20, sixteen>>20)
		g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 6*sixteen))
	}
}

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
		_, err := New(bad)
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
		_, err := New(Credentials{Proxy: bad})
		g.Expect(err).
			To(MatchError(
				And(ContainSubstring("the source's Secret: proxy is not the URL of a proxy"), Not(ContainSubstring("pass"))),
			))
	}
}

func TestGetIsCanceled(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(slow))
	t.Cleanup(server.Close)

	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()

	_, err := newClient(t, Credentials{}).Get(ctx, Request{URL: server.URL, Limit: limit})
	g.Expect(err).To(MatchError(context.Canceled), "rather than the client's own deadline")
}

func TestUnreachableServer(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())

	address := "http://" + listener.Addr().String()
	g.Expect(listener.Close()).To(Succeed())

	_, err = newClient(t, Credentials{}).Get(t.Context(), Request{URL: address, Limit: limit})
	g.Expect(err).
		To(MatchError(And(
			ContainSubstring(address),
			ContainSubstring("connection refused"),
			ContainSubstring("check that the server runs"),
		)))
	_, err = newClient(t, Credentials{}).Get(t.Context(), Request{URL: "http://[::1:x/%zz", Limit: limit})
	g.Expect(err).To(MatchError(ContainSubstring("write it as https://host/path")))
}

func TestRedactURL(t *testing.T) {
	u, err := url.Parse("https://me:pass@host:8443/a%2Fb/c?token=x#y")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(RedactURL(u)).To(Equal("https://host:8443/a%2Fb/c"))
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
