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

// CredentialsError reports credentials that cannot be used. Its text never contains any of them.
type CredentialsError struct{ Err error }

func (e *CredentialsError) Error() string { return "the source's Secret: " + e.Err.Error() }

// Unwrap returns what is wrong with the credentials.
func (e *CredentialsError) Unwrap() error { return e.Err }

// StatusError reports a response with a status other than 200.
type StatusError struct {
	// URL of the request, without credentials and query.
	URL string
	// Status is the HTTP status code.
	Status int
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))

	switch {
	case e.IsDenied():
		return text + ": the credentials are missing, wrong or not sufficient; give a token, " +
			"or username and password, with read access: in the Secret of spec.fetchConfig.secretRef, " +
			"or in the environment of the command line"
	case e.Status == http.StatusNotFound:
		return text + ": there is no such version or file; correct spec.version or spec.fetchConfig"
	case e.Status == http.StatusProxyAuthRequired:
		return text + ": the proxy asks for credentials; put them into the proxy's URL, " +
			"in the Secret of spec.fetchConfig.secretRef or the operator's variable HTTPS_PROXY"
	case e.Status >= http.StatusInternalServerError:
		return text + ": the server has a problem; the request will be retried"
	}

	return text
}

// IsDenied reports whether the server asks for other credentials.
func (e *StatusError) IsDenied() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// IsNotFound reports whether an error is a server's answer that the file does not exist.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone)
}

// RateLimitError reports that a server accepts no more requests for now, or is out of service until a known time.
type RateLimitError struct {
	// URL of the request, without credentials and query.
	URL string
	// Status is the code of the response.
	Status int
	// Until is the time from which the server accepts requests again.
	Until time.Time
}

func (e *RateLimitError) Error() string {
	if e.Status == http.StatusServiceUnavailable {
		return fmt.Sprintf("%s: the server is out of service until %s, when the request will be retried",
			e.URL, e.Until.UTC().Format("15:04:05 MST"))
	}

	return fmt.Sprintf(
		"%s: the server accepts no more requests from here until %s, when the request will be retried; "+
			"most servers accept more with a token, in the Secret of spec.fetchConfig.secretRef or in the environment",
		e.URL,
		e.Until.UTC().Format("15:04:05 MST"),
	)
}

// ContentError reports a response that cannot be the requested file.
type ContentError struct {
	// URL of the request, without credentials and query.
	URL string
	// Reason completes the sentence that starts with the URL.
	Reason string
}

func (e *ContentError) Error() string { return e.URL + " " + e.Reason }

// UnreachableError reports that no complete response arrived.
type UnreachableError struct {
	// URL of the request, without credentials and query.
	URL string
	err error
}

// newUnreachableError wraps the error of a request. The *url.Error of net/http is dropped: it names
// the URL that the server redirected to, whose query may contain a credential.
func newUnreachableError(address string, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}

	return &UnreachableError{URL: address, err: err}
}

func (e *UnreachableError) Error() string {
	var (
		certificate *tls.CertificateVerificationError
		redirect    *RedirectError
		address     *AddressError
	)

	switch {
	case errors.As(e.err, &address):
		return fmt.Sprintf("%s: %v", e.URL, address)
	case errors.As(e.err, &certificate):
		return fmt.Sprintf(
			"%s: the server's certificate is not trusted: %v; "+
				"add the certificate of its authority as ca.crt to the Secret of spec.fetchConfig.secretRef",
			e.URL,
			certificate.Err,
		)
	case errors.As(e.err, &redirect):
		return fmt.Sprintf("%s: %v; use the address of the file itself", e.URL, redirect)
	case errors.Is(e.err, context.DeadlineExceeded):
		return fmt.Sprintf(
			"%s: the response did not start, or did not end, in time; check the server and any proxy in front of it",
			e.URL,
		)
	}

	return fmt.Sprintf("%s: %v; check that the server runs and is reachable", e.URL, e.err)
}

// Unwrap returns the error of the transport.
func (e *UnreachableError) Unwrap() error { return e.err }

// temporary reports whether the same request may succeed soon.
func (e *UnreachableError) temporary() bool {
	var (
		certificate *tls.CertificateVerificationError
		redirect    *RedirectError
		address     *AddressError
	)

	return !errors.As(e.err, &certificate) && !errors.As(e.err, &redirect) && !errors.As(e.err, &address) &&
		!errors.Is(e.err, context.DeadlineExceeded) &&
		!errors.Is(e.err, context.Canceled)
}
