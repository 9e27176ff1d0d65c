// Package ui serves the status page: read-only pages about the providers of a cluster, which update themselves, for the
// user who has started the program.
//
// A page is a struct of texts that a template shows. What no field takes from a view cannot be on the page.
package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// Reader reads what the pages show.
type Reader interface {
	// Providers lists the provider resources, in clusterctl's order of installation.
	Providers(ctx context.Context) ([]v1alpha2.Provider, error)
	// Detailed returns all facts about a provider.
	Detailed(ctx context.Context, p v1alpha2.Provider) (view.Provider, error)
	// History returns the revisions of a provider's release, oldest first.
	History(ctx context.Context, p v1alpha2.Provider) ([]view.Revision, error)
	// Compare compares two states of a provider's release.
	Compare(ctx context.Context, p v1alpha2.Provider, sides view.Sides) (view.Comparison, error)
}

// Site is a status page for the user of this computer: the user who has its URL, which contains a token, sees
// everything that the program can see.
type Site struct {
	reader Reader
	// cluster is the name of the cluster, and host the address of the site.
	cluster, host, token string
}

// NewSite returns a site with a new token, which shows the cluster that has a name. The address is that of its
// listener, on the loopback interface.
func NewSite(reader Reader, cluster string, address net.Addr) *Site {
	return &Site{reader: reader, cluster: cluster, host: address.String(), token: rand.Text()}
}

// URL returns the URL of the overview.
func (s *Site) URL() string { return "http://" + s.host + s.base() }

// base returns the path of the overview.
func (s *Site) base() string { return "/" + s.token + "/" }

// idleTimeout is how long a connection of a browser stays open for the next request.
var idleTimeout = time.Minute

// Serve serves the pages until the context ends.
func (s *Site) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.guard(http.StripPrefix("/"+s.token, s.pages())),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}

	defer context.AfterFunc(ctx, func() { _ = server.Close() })()

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}
