package attack

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// tlsIdentity is the attacker's certificate, for its own servers and for those that it pretends to be.
type tlsIdentity struct {
	ca          []byte // PEM
	certificate tls.Certificate
}

func newIdentity(g Gomega, host string) tlsIdentity {
	ips := []net.IP{net.ParseIP(host), net.IPv4(127, 0, 0, 1)}
	pem, key, err := cert.GenerateSelfSignedCertKey("hostile.example", ips, []string{
		"github.com", "api.github.com", "localhost",
	})
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(pem, key)
	g.Expect(err).NotTo(HaveOccurred())

	return tlsIdentity{pem, pair}
}

// server starts a server of the attacker with TLS at the address of this machine that is not loopback,
// and returns its URL. It remembers the credentials that it receives.
func (a *arena) server(handler http.Handler) string {
	return a.listen(a.host+":0", handler, true)
}

// plainServer is server without TLS.
func (a *arena) plainServer(handler http.Handler) string {
	return a.listen(a.host+":0", handler, false)
}

func (a *arena) listen(address string, handler http.Handler, secure bool) string {
	a.Helper()

	listener, err := net.Listen("tcp", address)
	a.Expect(err).NotTo(HaveOccurred())

	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.remember(r)
		handler.ServeHTTP(w, r)
	}))
	_ = s.Listener.Close()
	s.Listener = listener
	s.Config.ErrorLog = nil

	if secure {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{a.identity.certificate}}
		s.StartTLS()
	} else {
		s.Start()
	}

	a.Cleanup(func() {
		s.CloseClientConnections()

		_ = listener.Close()
	})

	return s.URL
}

// remember keeps the headers of a request for neverReceived.
func (w *world) remember(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, values := range r.Header {
		w.seen = append(w.seen, strings.Join(values, " "))
	}
}

// received reports whether a hostile server received a text, or the text as a basic password.
func (w *world) received(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, value := range w.seen {
		encoded := strings.TrimPrefix(value, "Basic ")
		decoded, _ := base64.StdEncoding.DecodeString(encoded)

		if strings.Contains(value, text) || strings.Contains(string(decoded), text) {
			return true
		}
	}

	return false
}

// neverReceived declares that no hostile server may receive a text.
func (a *arena) neverReceived(what, text string) {
	a.never("a hostile server has "+what, func(context.Context) bool { return a.received(text) })
}

// inner is a server that only this machine can reach, such as a metadata service.
type inner struct {
	address     string // host:port
	port        string
	secret      string // what it answers
	connections atomic.Int32
}

// inner starts a server on the loopback address that the operator must not connect to. What it answers
// must not be known to the tenant.
func (a *arena) inner() *inner {
	a.Helper()

	i := &inner{secret: "SecretAccessKey-of-" + a.name + "-end"}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"SecretAccessKey": "`+i.secret+`"}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			i.connections.Add(1)
		}
	}
	server.Start()
	a.Cleanup(server.Close)

	i.address = server.Listener.Addr().String()
	_, i.port, _ = net.SplitHostPort(i.address)

	a.never("the operator has connected to an inner server", func(context.Context) bool {
		return i.connections.Load() > 0
	})
	a.neverKnown(i.secret)

	return i
}

// trust returns the name of a Secret of the tenant with the attacker's authority and more data, for
// fetchConfig.secretRef.
func (a *arena) trust(more map[string]string) *corev1.Secret {
	data := map[string]string{"ca.crt": string(a.identity.ca)}
	for key, value := range more {
		data[key] = value
	}

	return &corev1.Secret{ObjectMeta: named(tenant, a.name+"-source"), StringData: data}
}

// proxy starts a proxy of the attacker, which looks into what is sent to any server through TLS, too.
func (a *arena) proxy() string {
	return a.plainServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.NotFound(w, r)
			return
		}

		w.WriteHeader(http.StatusOK)

		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}

		go a.lookInto(connection)
	}))
}

// lookInto answers requests in a connection as if it were the server that was asked for.
func (a *arena) lookInto(connection net.Conn) {
	secure := tls.Server(connection, &tls.Config{Certificates: []tls.Certificate{a.identity.certificate}})
	served := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.remember(r)

		if strings.HasPrefix(r.URL.Path, "/v2") && r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="bed"`)
			w.WriteHeader(http.StatusUnauthorized)

			return
		}

		http.NotFound(w, r)
	})}
	_ = served.Serve(&oneConnection{connection: secure})
}

// oneConnection is a listener for a single connection.
type oneConnection struct {
	connection net.Conn
	taken      atomic.Bool
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if l.taken.Swap(true) {
		return nil, net.ErrClosed
	}

	return l.connection, nil
}

func (l *oneConnection) Close() error   { return nil }
func (l *oneConnection) Addr() net.Addr { return l.connection.LocalAddr() }
