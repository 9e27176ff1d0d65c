package transport

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// quiet is a transport whose responses repeat none of the credentials that it has sent: they become a part of messages.
// The answers of token services, which do repeat some, and the content of files are not looked at.
type quiet struct {
	next http.RoundTripper

	mu   sync.Mutex
	sent []string
	echo Echo
}

// maxSent is how many credentials are remembered. Registries have one for each repository.
const maxSent = 64

// RoundTrip sends a request.
func (q *quiet) RoundTrip(req *http.Request) (*http.Response, error) {
	echo := q.remember(secretsOf(req))

	res, err := q.next.RoundTrip(req)
	if err != nil {
		if echo.In([]byte(err.Error())) {
			return nil, ErrEcho // such as the names of a certificate
		}

		return nil, err
	}

	if echo.inHeader(res.Header) {
		_ = res.Body.Close()
		return nil, ErrEcho
	}

	if res.StatusCode >= http.StatusBadRequest || isQuoted(req.URL.Path) {
		res.Body = echo.Body(res.Body)
	}

	return res, nil
}

// isQuoted reports whether a path is that of what a registry knows, such as the tags of a repository.
func isQuoted(path string) bool {
	return slices.ContainsFunc([]string{"/tags/list", "/manifests/", "/referrers/"}, func(part string) bool {
		return strings.Contains(path, part)
	})
}

// inHeader reports whether a header contains a secret, except for the queries of redirects, which no message has.
func (e Echo) inHeader(header http.Header) bool {
	for name, values := range header {
		for _, value := range values {
			if name == "Location" {
				value, _, _ = strings.Cut(value, "?")
			}

			if name != "Set-Cookie" && e.In([]byte(value)) {
				return true
			}
		}
	}

	return false
}

// remember adds credentials, and returns what finds all so far.
func (q *quiet) remember(secrets []string) Echo {
	q.mu.Lock()
	defer q.mu.Unlock()

	for _, secret := range secrets {
		if !slices.Contains(q.sent, secret) {
			q.sent = append(q.sent[max(0, len(q.sent)-maxSent+1):], secret)
			q.echo = NewEcho(q.sent...)
		}
	}

	return q.echo
}

// secretsOf returns the credentials in a request.
func secretsOf(req *http.Request) []string {
	var secrets []string

	if username, password, isBasic := req.BasicAuth(); isBasic {
		secrets = BasicAuth(username, password)
	} else if _, token, found := strings.Cut(req.Header.Get("Authorization"), " "); found {
		secrets = append(secrets, token)
	}

	return append(secrets, formSecrets(req)...)
}

// formSecrets returns the credentials in the form that is sent to a token service.
func formSecrets(req *http.Request) []string {
	const maxForm = 64 << 10

	if req.GetBody == nil || req.ContentLength > maxForm ||
		req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return nil
	}

	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()

	text := make([]byte, req.ContentLength)
	if _, err := io.ReadFull(body, text); err != nil {
		return nil
	}

	form, _ := url.ParseQuery(string(text)) // what is in order is looked at

	return append(BasicAuth(form.Get("username"), form.Get("password")), form.Get("refresh_token"))
}
