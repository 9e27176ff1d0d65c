package bed

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	gcr "github.com/google/go-containerregistry/pkg/registry"
)

// Implementation is a registry implementation.
type Implementation string

const (
	// Distribution is the CNCF's registry. It does not have the referrers API.
	Distribution Implementation = "distribution"
	// GoContainerRegistry is crane's registry. It has the referrers API, runs in this process and
	// keeps manifests in memory.
	GoContainerRegistry Implementation = "go-containerregistry"
)

// Implementations lists all implementations, for tests that must pass with any registry.
func Implementations() []Implementation { return []Implementation{Distribution, GoContainerRegistry} }

// inProcess is a registry that runs as a handler in this process.
type inProcess struct {
	handler http.Handler
	tls     *tls.Config
	server  *http.Server
}

// newInProcess returns a registry that requires the password of the options, if there is one.
func newInProcess(o RegistryOptions) *inProcess {
	silent := log.New(io.Discard, "", 0)
	registry := gcr.New(
		gcr.Logger(silent),
		gcr.WithReferrersSupport(true),
		gcr.WithBlobHandler(gcr.NewDiskBlobHandler(o.Dir)),
	)

	return &inProcess{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); o.User != "" && (user != o.User || password != o.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="bed"`)
			w.WriteHeader(http.StatusUnauthorized)

			return
		}

		registry.ServeHTTP(w, r)
	})}
}

func (p *inProcess) useTLS(pair keyPair) error {
	certificate, err := tls.X509KeyPair(pair.certificate, pair.key)
	p.tls = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}

	return err
}

// serve starts the registry in this process.
func (r *Registry) serve() error {
	listener, err := net.Listen("tcp", r.Address)
	if err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}

	r.Address = listener.Addr().String()
	p := r.inProcess
	// HTTP/2 is off: the registry reads one blob at a time, and with a shared connection the waiting
	// uploads would block the one that is being read.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)

	p.server = &http.Server{
		Handler:   p.handler,
		TLSConfig: p.tls,
		Protocols: protocols,
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go func() {
		if p.tls == nil {
			_ = p.server.Serve(listener) // returns when the server is closed
		} else {
			_ = p.server.ServeTLS(listener, "", "")
		}
	}()

	return nil
}

func (p *inProcess) stop() {
	if p.server != nil {
		_ = p.server.Close()
	}
}
