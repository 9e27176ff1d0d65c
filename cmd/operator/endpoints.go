package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// endpoints are the flags of the metrics, the health and the Go profiles.
type endpoints struct {
	metrics     string
	health      string
	secure      bool
	certificate string
	pprof       string
}

func (e *endpoints) bindFlags(set *pflag.FlagSet) {
	set.StringVar(&e.metrics, "metrics-bind-address", ":8443", "Address of the metrics; 0 disables them.")
	set.StringVar(&e.health, "health-probe-bind-address", ":9440", "Address of /healthz and /readyz; 0 disables them.")
	set.BoolVar(
		&e.secure,
		"metrics-secure",
		true,
		"Serve metrics by HTTPS, only to users who may get /metrics; otherwise by HTTP to all.",
	)
	set.StringVar(
		&e.certificate,
		"metrics-cert-path",
		"",
		"Folder with the certificate (tls.crt) and the key (tls.key) of the metrics. Default: a self-signed "+
			"certificate.",
	)
	set.StringVar(
		&e.pprof,
		"pprof-bind-address",
		"",
		"Address of Go profiles at /debug/pprof/, such as localhost:6060. Only loopback addresses are allowed.",
	)
}

// addTo adds the metrics and the health to the manager, whose own servers have no limits.
func (e *endpoints) addTo(mgr ctrl.Manager) error {
	if isDisabled(e.metrics) {
		return e.addHealth(mgr)
	}

	var (
		handler = promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{
			ErrorHandling: promhttp.HTTPErrorOnError,
		})
		config *tls.Config
		err    error
	)

	if e.secure {
		if handler, err = restricted(mgr, handler); err != nil {
			return err
		}

		if config, err = e.tlsConfig(mgr); err != nil {
			return err
		}
	}

	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)

	server, err := newServer("metrics", e.metrics, mux, config)
	if err != nil {
		return fmt.Errorf("serve the metrics: %w", err)
	}

	if err := mgr.Add(server); err != nil {
		return err
	}

	return e.addHealth(mgr)
}

// addHealth adds /healthz and /readyz to the manager.
func (e *endpoints) addHealth(mgr ctrl.Manager) error {
	if isDisabled(e.health) {
		return nil
	}

	server, err := newServer("health", e.health, newHealthHandler(), nil)
	if err != nil {
		return fmt.Errorf("serve the health: %w", err)
	}

	return mgr.Add(server)
}

// newHealthHandler returns what serves /healthz, /readyz, and their checks by name.
func newHealthHandler() http.Handler {
	mux := http.NewServeMux()

	for _, path := range []string{"/healthz", "/readyz"} {
		ping := http.StripPrefix(path, &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}})
		mux.Handle(path, ping)
		mux.Handle(path+"/", ping)
	}

	return mux
}

func isDisabled(address string) bool { return address == "" || address == "0" }

// tlsConfig returns the TLS configuration of the metrics, with the certificate of the flag, or else a self-signed one.
func (e *endpoints) tlsConfig(mgr ctrl.Manager) (*tls.Config, error) {
	// A scrape has a single request, so that HTTP/2 has no benefit; without it, its attacks do not matter.
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}

	if e.certificate == "" {
		certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
		if err != nil {
			return nil, err
		}

		pair, err := tls.X509KeyPair(certificate, key)
		config.Certificates = []tls.Certificate{pair}

		return config, err
	}

	if err := checkCertificate(e.certificate); err != nil {
		return nil, err
	}

	watcher, err := certwatcher.New(
		filepath.Join(e.certificate, corev1.TLSCertKey), filepath.Join(e.certificate, corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, err
	}

	config.GetCertificate = watcher.GetCertificate

	return config, mgr.Add(watcher)
}

// checkCertificate returns an error if a folder does not contain the certificate of the metrics and its key.
func checkCertificate(folder string) error {
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("--metrics-cert-path needs a folder with tls.crt and tls.key: %w", err)
		}
	}

	return nil
}

// pprofAddress returns the address of Go profiles, or an error if it can be reached from other hosts: profiles contain
// credentials, and are served without authentication.
func (e *endpoints) pprofAddress() (string, error) {
	if e.pprof == "" || e.pprof == "0" {
		return "", nil
	}

	host, _, err := net.SplitHostPort(e.pprof)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf(
			"--pprof-bind-address %s must be a loopback address, such as localhost:6060; use kubectl port-forward to reach it",
			e.pprof,
		)
	}

	return e.pprof, nil
}
