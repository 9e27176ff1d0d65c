package oci

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// redirectError reports a redirect that is not followed.
type redirectError struct{ reason string }

func (e *redirectError) Error() string { return "the registry redirects " + e.reason }

// checkRedirect returns a function that keeps credentials from other servers, and refuses redirects
// that leave TLS. With a guard, only blobs, whose digests are known, may come from any server.
func checkRedirect(guard *web.Guard) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		const maxRedirects = 10

		from, to := via[0].URL, req.URL

		switch {
		case len(via) >= maxRedirects:
			return &redirectError{fmt.Sprintf("more than %d times", maxRedirects)}
		case from.Scheme == "https" && to.Scheme != "https":
			return &redirectError{"from https to http, which is not followed"}
		case guard.CheckHost(to.Hostname()) != nil:
			return guard.CheckHost(to.Hostname())
		case !guard.MayRedirect(from, to) && (!isBlob(via[0]) || to.Scheme != "https"):
			return &redirectError{fmt.Sprintf("to another server, %s, which the operator's flag --allowed-redirect-hosts "+
				"does not list", to.Host)}
		}

		// net/http keeps them for other ports and for subdomains.
		if from.Scheme != to.Scheme || from.Host != to.Host {
			req.Header.Del("Authorization")
		}

		return nil
	}
}

// isBlob reports whether a request reads a blob by its digest.
func isBlob(req *http.Request) bool {
	_, after, found := strings.Cut(req.URL.Path, "/blobs/")
	return found && strings.HasPrefix(after, "sha") && (req.Method == http.MethodGet || req.Method == http.MethodHead)
}

// diagnoseRefusal returns the message for a connection or redirect that is refused, or "" if that is
// not the cause.
func diagnoseRefusal(err error) string {
	var (
		address  *web.AddressError
		redirect *redirectError
	)

	switch {
	case errors.As(err, &address):
		return address.Error()
	case errors.As(err, &redirect):
		return redirect.Error()
	}

	return ""
}
