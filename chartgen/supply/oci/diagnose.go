package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// diagnose returns the reason of an error and a message with the fix.
func diagnose(ref Reference, err error) (Reason, string) {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return diagnoseResponse(ref, response)
	}

	if message := diagnoseTLS(ref, err); message != "" {
		return Untrusted, message
	}

	if message := diagnoseRefusal(err); message != "" {
		return Denied, message
	}

	var network net.Error

	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return Denied, "the registry asks for credentials, and there are none for " + ref.Registry +
			"; give a username and a password, or a docker configuration that names the host"
	case errors.Is(err, errdef.ErrNotFound):
		return NotFound, "not found; check the path and the tag"
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return Invalid, "larger than any such content may be"
	case errors.Is(err, content.ErrMismatchedDigest),
		errors.Is(err, content.ErrTrailingData),
		strings.Contains(err.Error(), "mismatch "): // oras has no error value for sizes
		return Invalid, "the content does not match its digest and size; " +
			"the registry, or a proxy in front of it, is damaged"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return Unavailable, "no answer in time; check that " + ref.Registry + " can be reached from here"
	case errors.Is(err, errStalled):
		return Unavailable, "the connection stalled; check the network and the registry"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Unavailable, "the connection was cut repeatedly"
	}

	return Unavailable, describe(err) + "; check that " + ref.Registry + " can be reached from here"
}

// diagnoseTLS returns the message for a failed TLS handshake, or "" if that is not the cause.
func diagnoseTLS(ref Reference, err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		broken    x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
	)

	switch {
	case errors.As(err, &authority):
		return "the certificate of " + ref.Registry + " is signed by an authority that is not trusted; " +
			"give its CA certificate as ca.crt"
	case errors.As(err, &host):
		return host.Error() + "; use the name that the certificate is for"
	case errors.As(err, &broken):
		return "the certificate of " + ref.Registry + " is not valid: " + broken.Error()
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return ref.Registry + " does not use TLS; if that is intended, write http:// in front of it"
	}

	return ""
}

// diagnoseResponse returns the reason and the message for a response with an error status.
func diagnoseResponse(ref Reference, response *errcode.ErrorResponse) (Reason, string) {
	detail := ""
	if len(response.Errors) > 0 {
		detail = " (" + firstLine(response.Errors[0].Error()) + ")"
	}

	switch code := response.StatusCode; {
	case code == http.StatusNotFound:
		return NotFound, "not found; check the path and the tag"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return Denied, "the registry refuses the credentials for " + ref.Registry + detail +
			"; check that they are right and allow this"
	case code == http.StatusTooManyRequests:
		return Unavailable, "the registry has received too many requests" + detail +
			"; wait, or give credentials that allow more"
	case code >= http.StatusInternalServerError:
		return Unavailable, fmt.Sprintf("the registry answers %d %s%s", code, http.StatusText(code), detail)
	default:
		return Invalid, fmt.Sprintf("the registry answers %d %s%s", code, http.StatusText(code), detail)
	}
}

// urlQuery matches the query of a URL. Registries redirect to signed URLs, whose query is a
// credential.
var urlQuery = regexp.MustCompile(`\?[^\s"]*`)

// describe returns the text of an error without the URL that was requested, and without the queries
// of any other URL.
func describe(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}

	return urlQuery.ReplaceAllString(firstLine(err.Error()), "")
}

func firstLine(s string) string {
	const maxLength = 300

	line, _, _ := strings.Cut(s, "\n")

	return line[:min(len(line), maxLength)]
}
