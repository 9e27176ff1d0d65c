package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// endpoints are the flags of the metrics and of the Go profiles.
type endpoints struct {
	metrics     string
	secure      bool
	certificate string
	pprof       string
}

func (e *endpoints) bindFlags(set *pflag.FlagSet) {
	set.StringVar(&e.metrics, "metrics-bind-address", ":8443", "Address of the metrics; 0 disables them.")
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

// metricsOptions returns the options of the metrics server.
func (e *endpoints) metricsOptions() (metricsserver.Options, error) {
	options := metricsserver.Options{BindAddress: e.metrics, SecureServing: e.secure}
	if !e.secure {
		return options, nil
	}

	options.FilterProvider = newAccessFilter

	// A scrape has a single request, so that HTTP/2 has no benefit; without it, its attacks do not matter.
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}

	if e.certificate == "" {
		return options, nil
	}

	// The server would use a self-signed certificate instead of a missing one.
	if err := checkCertificate(e.certificate); err != nil {
		return options, err
	}

	options.CertDir = e.certificate

	return options, nil
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
