package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Kind classifies the failure of a request.
type Kind int

// Kinds of an Error.
const (
	// Unavailable means that the server does not answer, or answers with an error of its own. The
	// same request may succeed later.
	Unavailable Kind = iota
	// NotFound means that the server does not have what was requested.
	NotFound
	// Denied means that the server asks for other credentials.
	Denied
	// InvalidToken means that the server refuses the token that was sent.
	InvalidToken
	// Untrusted means that the server's certificate is not trusted, or that it does not use TLS.
	Untrusted
	// Invalid means that the content is not what was expected. Reading it again does not help.
	Invalid
	// Unverified means that the content has another digest than required, or no valid signature. None of it is used.
	Unverified
	// Conflict means that the tag exists with other content. Tags are never overwritten.
	Conflict
	// Refused means that nothing was requested: the address is not allowed, or the Secret cannot be used.
	Refused
)

// Error is a failed request to the server of a source.
type Error struct {
	// Place is what the request was about: a URL or a reference, without credentials and query.
	Place string
	Kind  Kind
	// Problem states what happened, and Fix what to do about it, if anything.
	Problem, Fix string
	// Status is the HTTP status of the server's answer; zero if there was none.
	Status int
	// Until is the time from which the server accepts requests again; zero if it is not known.
	Until time.Time
	// Err is the cause. Do not print it: unlike the message it may contain secrets such as a signed URL.
	Err error
}

// Error returns place and message.
func (e *Error) Error() string {
	if e.Place == "" {
		return e.Message()
	}

	return e.Place + ": " + e.Message()
}

// Message returns problem and fix.
func (e *Error) Message() string {
	if e.Fix == "" {
		return e.Problem
	}

	return e.Problem + "; " + e.Fix
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether an error is an *Error of the kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// invalidSecret returns the error of a Secret that cannot be used.
func invalidSecret(problem string) error {
	return &Error{Place: "the source's Secret", Kind: Refused, Problem: problem}
}

// Wrap returns the error of a request to a server, given as host[:port], as an *Error. It returns cancellation
// unchanged.
func Wrap(place, server string, err error) error {
	var known *Error

	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", place, context.Canceled)
	case errors.As(err, &known) && known.Place != "":
		return err
	case known != nil:
		known.Place = place
		return known
	}

	e := diagnose(server, err)
	e.Place, e.Err = place, err

	return e
}

// diagnose returns what an error of net/http means.
func diagnose(server string, err error) *Error {
	var (
		certificate *tls.CertificateVerificationError
		noTLS       tls.RecordHeaderError
	)

	switch {
	case errors.Is(err, ErrEcho):
		return &Error{Kind: Invalid, Problem: ErrEcho.Error(), Fix: "check whether " + server + " is the right server"}
	case errors.As(err, &certificate):
		return &Error{
			Kind:    Untrusted,
			Problem: "the certificate of " + server + " is not trusted: " + certificate.Err.Error(),
			Fix:     "give the certificate of its authority as ca.crt in the source's Secret, or correct the address",
		}
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return &Error{
			Kind: Untrusted, Problem: server + " does not use TLS", Fix: "if that is intended, write http:// in front of it",
		}
	case isTimeout(err):
		return &Error{
			Problem: server + " did not answer in time, or the connection stalled",
			Fix:     "check the server, and the network and any proxy in front of it",
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Problem: "the connection was cut", Fix: "check the network, and any proxy in front of " + server}
	}

	return &Error{Problem: Describe(err), Fix: "check that " + server + " can be reached from here"}
}

// isTimeout reports whether a server did not answer in time, or stopped to.
func isTimeout(err error) bool {
	var network net.Error

	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// StatusError returns the error of a response with another status than 200.
func StatusError(place string, code int) *Error {
	e := &Error{
		Place: place, Problem: fmt.Sprintf("the server answers %d %s", code, http.StatusText(code)), Status: code,
	}

	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind = Denied
		e.Fix = "give credentials that allow this, in the Secret of spec.fetchConfig.secretRef or, on the command line, by " +
			"docker login or in the environment"
	case http.StatusNotFound, http.StatusGone:
		e.Kind = NotFound
		e.Fix = "correct the version or the address"
	case http.StatusProxyAuthRequired:
		e.Kind = Denied
		e.Problem = "the proxy asks for credentials"
		e.Fix = "put them into the proxy's URL, in the Secret of spec.fetchConfig.secretRef or in HTTPS_PROXY"
	case http.StatusTooManyRequests:
		e.Fix = "wait, or give credentials, for which most servers accept more"
	default:
		if code < http.StatusInternalServerError {
			e.Kind = Invalid
		}
	}

	return e
}

// checkStatus returns an *Error unless the status of a response is 200.
func checkStatus(place string, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}

	e := StatusError(place, res.StatusCode)

	if until, _ := rateLimit(res); !until.IsZero() {
		e.Kind, e.Until = Unavailable, until
		e.Problem += ", and accepts no more requests until " + until.UTC().Format("15:04:05 MST")
		e.Fix = "wait, or give a token, with which most servers accept more"
	}

	return e
}

// urlQuery matches the query of a URL. Servers redirect to signed URLs, whose query is a credential.
var urlQuery = regexp.MustCompile(`\?[^\s"]*`)

// Describe returns the first line of an error without the URL that was requested, and without the queries
// of any other URL.
func Describe(err error) string {
	const maxLength = 300

	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}

	line, _, _ := strings.Cut(err.Error(), "\n")

	return urlQuery.ReplaceAllString(line[:min(len(line), maxLength)], "")
}
