package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// contentPolicy lets a page load the style sheet, the script and the icon of this server, and nothing else: no code in
// the page, no other server, no frame.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// headers are in each response.
var headers = map[string]string{
	"Content-Security-Policy":      contentPolicy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
	"Cache-Control":                "no-store",
}

// guard refuses requests that no page makes: those without the token, those that a browser sends to a name which only
// resolves to the computer, by which a site could otherwise read the page (DNS rebinding), those of other sites, and
// those that are no reads. It sets the headers of all responses.
func (s *Site) guard(next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(s.host)
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}

		token, _, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")

		// Links of other sites may open the page, but nothing else of them may use it.
		foreign := r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"

		switch {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "Open the URL that capstan ui has printed.", http.StatusMisdirectedRequest)
		case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
			w.Header().Set("Connection", "close") // another user of the computer keeps none open
			http.Error(w, "Open the URL that capstan ui has printed: it contains a token.", http.StatusForbidden)
		case foreign:
			http.Error(w, "Another site must not use the page.", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "The page is read-only.", http.StatusMethodNotAllowed)
		case r.ContentLength != 0:
			http.Error(w, "A request of the page has no body.", http.StatusBadRequest)
		case !slash:
			http.Redirect(w, r, s.base(), http.StatusFound)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
