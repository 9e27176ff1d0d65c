package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// CredentialsError says that credentials cannot be used. It never holds any of them.
type CredentialsError struct{ err error }

func (e *CredentialsError) Error() string { return "the source's Secret: " + e.err.Error() }

// StatusError is a server's answer other than success. The URL is without credentials and query.
type StatusError struct {
	URL    string
	Status int
}

func (e *StatusError) Error() string {
	said := fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
	switch {
	case e.IsDenied():
		return said + ": the credentials are missing, wrong or not sufficient; give a token, or username and password, that may read it: in the Secret of spec.fetchConfig.secretRef, on the command line in the environment"
	case e.Status == http.StatusNotFound:
		return said + ": there is no such version or file; correct spec.version or spec.fetchConfig"
	case e.Status == http.StatusProxyAuthRequired:
		return said + ": the proxy asks for credentials; put them into the proxy's URL, in the Secret of spec.fetchConfig.secretRef or the operator's variable HTTPS_PROXY"
	case e.Status >= http.StatusInternalServerError:
		return said + ": the server is in trouble; it will be asked again"
	}

	return said
}

// Denied reports whether the server wants other credentials.
func (e *StatusError) IsDenied() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// Missing reports whether an error is a server's word that a file is not there.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone)
}

// LimitError says that a server wants no more requests for now.
type RateLimitError struct {
	URL string
	// Until is when it may be asked again.
	Until time.Time
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf(
		"%s: the server takes no more requests from here until %s, when it will be asked again; most take more with a token, in the Secret of spec.fetchConfig.secretRef or in the environment",
		e.URL,
		e.Until.UTC().Format("15:04:05 MST"),
	)
}

// ContentError says that what came cannot be what was asked for.
type ContentError struct{ URL, Reason string }

func (e *ContentError) Error() string { return e.URL + " " + e.Reason }

// UnreachableError says that no whole answer came.
type UnreachableError struct {
	URL string
	err error
}

func (e *UnreachableError) Unwrap() error { return e.err }

func (e *UnreachableError) Error() string {
	var (
		certificate *tls.CertificateVerificationError
		redirect    *redirectError
	)
	switch {
	case errors.As(e.err, &certificate):
		return fmt.Sprintf(
			"%s: the server's certificate is not trusted: %v; put the certificate of its authority under ca.crt into the Secret of spec.fetchConfig.secretRef",
			e.URL,
			certificate.Err,
		)
	case errors.As(e.err, &redirect):
		return fmt.Sprintf("%s: the server redirects %s; use an address that leads to the file itself", e.URL, redirect.how)
	case errors.Is(e.err, context.DeadlineExceeded):
		return fmt.Sprintf(
			"%s: the answer did not come, or did not end, in time; see whether the server and a proxy before it work",
			e.URL,
		)
	}

	return fmt.Sprintf("%s: %v; see whether the server runs and the operator can reach it", e.URL, e.err)
}

// redirectError is a redirect that is not followed.
type redirectError struct{ how string }

func (e *redirectError) Error() string { return e.how }

// unreachable makes the error of a request. The library's own names the URL that it was redirected
// to, with its query, which may be a credential.
func newUnreachableError(address string, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}

	return &UnreachableError{URL: address, err: err}
}

// passing reports whether the same request may succeed soon.
func (e *UnreachableError) temporary() bool {
	var (
		certificate *tls.CertificateVerificationError
		redirect    *redirectError
	)

	return !errors.As(e.err, &certificate) && !errors.As(e.err, &redirect) &&
		!errors.Is(e.err, context.DeadlineExceeded) &&
		!errors.Is(e.err, context.Canceled)
}
