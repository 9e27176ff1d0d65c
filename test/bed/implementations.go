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

// Implementation is whose registry it is.
type Implementation string

const (
	// Distribution is the CNCF's registry. It has no API for referrers.
	Distribution Implementation = "distribution"
	// GoContainerRegistry is the registry of crane, with the API for referrers. It runs in this
	// process and keeps manifests in memory.
	GoContainerRegistry Implementation = "go-containerregistry"
)

// Implementations are all that there are, for tests of what must work with any registry.
func Implementations() []Implementation { return []Implementation{Distribution, GoContainerRegistry} }

// inProcess is a registry that is a handler of this process.
type inProcess struct {
	handler http.Handler
	tls     *tls.Config
	server  *http.Server
}

// newInProcess makes a registry that asks for the password of the options, if there is one.
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

// serve starts the registry that is in this process.
func (r *Registry) serve() error {
	listener, err := net.Listen("tcp", r.Address)
	if err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}

	r.Address = listener.Addr().String()
	p := r.inProcess
	// No HTTP/2: it reads one blob at a time, and those that wait would hold up that one where all
	// share a connection.
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
			_ = p.server.Serve(listener) // until it is closed
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
