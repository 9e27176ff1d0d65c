package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Local is the access of a page that is served to the user of this computer: the user who has its URL, which contains a
// token, sees everything that the program can see.
type Local struct {
	view  View
	token string
}

// NewLocal returns an access with a new token.
func NewLocal(view View) *Local { return &Local{view: view, token: rand.Text()} }

// Base returns the path of the overview, which contains the token.
func (l *Local) Base() string { return "/" + l.token + "/" }

// View returns what all viewers see.
func (l *Local) View(*http.Request) (View, error) { return l.view, nil }

// Guard refuses requests without the token, and those that a browser sends to a name which only resolves to the
// computer: a site could otherwise read the page through a name of its own (DNS rebinding). The address is that of
// the listener.
func (l *Local) Guard(address net.Addr, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(address.String())
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)

		token, _, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")

		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "Open the URL that capstan ui has printed.", http.StatusMisdirectedRequest)
		case subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) != 1:
			http.Error(w, "Open the URL that capstan ui has printed: it contains a token.", http.StatusForbidden)
		case !slash:
			http.Redirect(w, r, l.Base(), http.StatusFound)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
