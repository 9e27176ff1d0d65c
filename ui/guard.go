package ui

import (
	"net/http"
	"time"
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

// guard refuses requests that no page makes, and sets the headers of all responses.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w)

		// A viewer that reads slowly must not hold a connection. Streams set deadlines of their own.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout))

		// Links of other sites may open the page, but nothing else of them may use it.
		foreign := r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"

		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "The page is read-only.", http.StatusMethodNotAllowed)
		case r.ContentLength != 0:
			http.Error(w, "A request of the page has no body.", http.StatusBadRequest)
		case len(r.URL.RawQuery) > maxQuery:
			http.Error(w, "The query is too long.", http.StatusRequestURITooLong)
		case foreign:
			http.Error(w, "Another site must not use the page.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func setHeaders(w http.ResponseWriter) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
}
