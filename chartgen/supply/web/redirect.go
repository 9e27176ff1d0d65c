package web

import (
	"fmt"
	"net/http"
)

// RedirectError reports a redirect that is not followed.
type RedirectError struct{ how string }

func (e *RedirectError) Error() string { return "the server redirects " + e.how }

// CheckRedirect returns a function for http.Client that limits the number of redirects, keeps credentials from other
// servers, and refuses redirects that leave TLS or that the guard refuses: a server could otherwise choose any file
// that the operator can read. What is verified by its digest may come from any server with TLS; nil for nothing.
func CheckRedirect(guard *Guard, verified func(*http.Request) bool) func(*http.Request, []*http.Request) error {
	const maxRedirects = 10

	return func(req *http.Request, via []*http.Request) error {
		from, to := via[0].URL, req.URL

		switch {
		case len(via) >= maxRedirects:
			return &RedirectError{fmt.Sprintf("more than %d times", maxRedirects)}
		case from.Scheme == "https" && to.Scheme != "https":
			return &RedirectError{"from https to http, which is not followed"}
		case guard.CheckHost(to.Hostname()) != nil:
			return guard.CheckHost(to.Hostname())
		case !guard.MayRedirect(from, to) && (verified == nil || !verified(via[0]) || to.Scheme != "https"):
			return &RedirectError{fmt.Sprintf("to another server, %s, which the operator's flag --allowed-redirect-hosts "+
				"does not list", to.Host)}
		}

		// net/http keeps them for other ports and for subdomains.
		if Origin(from) != Origin(to) {
			req.Header.Del("Authorization")
		}

		return nil
	}
}
