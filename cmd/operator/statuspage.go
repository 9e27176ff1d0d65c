package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui"
	"github.com/capstan-project/capstan/ui/callers"
)

// maxConnections is how many connections to the status page can be open at the same time.
const maxConnections = 512

// statusPage are the flags of the status page.
type statusPage struct {
	address     string
	certificate string
}

func (s *statusPage) bindFlags(set *pflag.FlagSet) {
	set.StringVar(
		&s.address,
		"ui-bind-address",
		"0",
		"Address of the read-only status page, such as :9443; 0 disables it. It is served by HTTPS, and shows to users of "+
			"the cluster what they may read, so it needs a proxy that signs them in.",
	)
	set.StringVar(
		&s.certificate,
		"ui-cert-path",
		"",
		"Folder with the certificate (tls.crt) and the key (tls.key) of the status page, such as a mounted Secret. The "+
			"operator reads them again when they change. Default: a self-signed certificate.",
	)
}

// addTo makes the manager serve the page, unless it is disabled.
func (s *statusPage) addTo(mgr ctrl.Manager, reader *facts.Reader) error {
	if s.address == "" || s.address == "0" {
		return nil
	}

	if s.certificate != "" {
		if err := checkCertificate("--ui-cert-path", s.certificate); err != nil {
			return err
		}
	}

	access, err := callers.New(callers.Options{
		Config: mgr.GetConfig(),
		Mapper: mgr.GetRESTMapper(),
		Cache:  mgr.GetCache(),
		Facts:  reader,
	})
	if err != nil {
		return err
	}

	return mgr.Add(&pageServer{statusPage: s, manager: mgr, access: access, facts: reader})
}

// pageServer serves the page as long as the manager runs, on standby as well: a Service does not know the leader.
type pageServer struct {
	*statusPage

	manager ctrl.Manager
	access  *callers.Access
	facts   *facts.Reader
}

// NeedLeaderElection reports whether only the leader serves the page.
func (*pageServer) NeedLeaderElection() bool { return false }

// Start serves the page until the context ends.
func (s *pageServer) Start(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("serve the status page: %w", err)
	}

	feed := &ui.Feed{}
	if err := ui.Watch(ctx, s.manager.GetCache(), feed); err != nil {
		return err
	}

	go feed.Check(ctx, s.manager.GetAPIReader(), "")

	s.manager.GetLogger().Info("serving the status page", "address", listener.Addr().String())

	return ui.Serve(ctx, listener, ui.NewHandler(ui.Options{
		Base: "/", Access: s.access, Feed: feed, Usages: ui.NewUsages(ctx, s.facts.Usage, feed),
	}))
}

// listen returns a listener for TLS. Like the metrics, it does without HTTP/2 and its attacks.
func (s *statusPage) listen(ctx context.Context) (net.Listener, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}

	if s.certificate != "" {
		watched, err := certwatcher.New(
			filepath.Join(s.certificate, certificateFile), filepath.Join(s.certificate, keyFile))
		if err != nil {
			return nil, err
		}

		config.GetCertificate = watched.GetCertificate

		go func() { _ = watched.Start(ctx) }() // it ends with the context
	} else {
		created, err := selfSigned()
		if err != nil {
			return nil, err
		}

		config.Certificates = []tls.Certificate{created}
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}

	return tls.NewListener(netutil.LimitListener(listener, maxConnections), config), nil
}

func selfSigned() (tls.Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}

	return tls.X509KeyPair(certificate, key)
}
