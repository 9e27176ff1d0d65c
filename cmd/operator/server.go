package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Limits of a client, which may be anything that reaches the port: they hold before it says who it is.
const (
	// maxConnections is how many connections are served. Others wait, among them the kubelet's, so these are many: with a
	// header that is as large as possible, they take some 25 MiB.
	maxConnections = 256
	// maxHeader limits the header of a request in bytes: a token has up to some KiB.
	maxHeader = 16 << 10
	// headerTimeout limits the time for the TLS handshake, and for the header; requestTimeout the time for a request.
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second
	// maxHandshakes limits TLS handshakes a second: each costs a millisecond of processor time, and a refused client can
	// begin the next one at once.
	maxHandshakes = 100
)

// newServer returns a server that listens to an address, by HTTPS if there is a configuration.
func newServer(name, address string, handler http.Handler, config *tls.Config) (*manager.Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}

	listener = netutil.LimitListener(listener, maxConnections)
	if config != nil {
		listener = tls.NewListener(pacedListener{listener, rate.NewLimiter(maxHandshakes, maxHandshakes)}, config)
	}

	server := &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
	}

	// Clients ask once in a while, and connections that wait would keep others from it.
	server.SetKeepAlivesEnabled(false)

	return &manager.Server{Name: name, Server: server, Listener: listener, ShutdownTimeout: new(requestTimeout)}, nil
}

// pacedListener accepts a limited number of connections a second. Others wait in the system's queue.
type pacedListener struct {
	net.Listener

	limiter *rate.Limiter
}

func (l pacedListener) Accept() (net.Conn, error) {
	if err := l.limiter.Wait(context.Background()); err != nil {
		return nil, err
	}

	return l.Listener.Accept()
}
