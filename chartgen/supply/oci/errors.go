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

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Reason is why a registry did not give or take what it was asked to.
type Reason int

// Reasons.
const (
	// Unavailable: the registry does not answer, or not properly; it may do so later.
	Unavailable Reason = iota
	// NotFound: the registry does not have it.
	NotFound
	// Denied: the registry asks for other credentials.
	Denied
	// Untrusted: the registry's certificate is not trusted, or it does not speak TLS.
	Untrusted
	// Invalid: what the registry has is not what was expected; the same bytes will give it again.
	Invalid
	// Conflict: what is there already is something else, and is never overwritten.
	Conflict
)

// Error is what went wrong with a registry.
type Error struct {
	// Action is what was tried, for example "pull".
	Action    string
	Reference string
	Reason    Reason
	// Message says what happened and what to do.
	Message string
	// Err is the cause; it may hold what is in no message, such as a signed URL.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Action, e.Reference, e.Message) }
func (e *Error) Unwrap() error { return e.Err }

// IsReason reports whether an error is an *Error of this reason.
func IsReason(err error, reason Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason
}

// Explain makes an *Error of what a library returned that speaks to a registry for this package's
// callers; nil stays nil.
func WrapError(action, name string, err error) error {
	ref, parseErr := Parse(name)
	if parseErr != nil {
		ref = Reference{Repository: name}
	}

	err = wrapError(action, ref, err)

	var e *Error
	if errors.As(err, &e) && parseErr != nil {
		e.Reference = name
	}

	return err
}

// Passing reports whether an error may go away when the same is tried again.
func IsTemporary(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && IsReason(wrapError("", Reference{}, err), Unavailable)
}

// Conflicting is the error of a tag that is there already and holds something else.
func NewConflictError(action string, ref Reference, existing, wanted ocispec.Descriptor) error {
	return &Error{Action: action, Reference: ref.String(), Reason: Conflict, Message: fmt.Sprintf(
		"the tag is there already and holds %s, not %s; a tag is never overwritten: delete it, or use another repository",
		existing.Digest,
		wanted.Digest,
	)}
}

// explain makes an *Error of what the registry's client returned; nil stays nil.
func wrapError(action string, ref Reference, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}

	e := &Error{Action: action, Reference: ref.String(), Err: err}
	e.Reason, e.Message = diagnose(ref, err)

	return e
}

// invalid makes an *Error about content that will not get better.
func newInvalidError(action string, ref Reference, format string, args ...any) error {
	return &Error{Action: action, Reference: ref.String(), Reason: Invalid, Message: fmt.Sprintf(format, args...)}
}

// diagnose finds the reason and the remedy.
func diagnose(ref Reference, err error) (Reason, string) {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return diagnoseStatus(ref, response)
	}

	if reason, message := diagnoseTLS(ref, err); message != "" {
		return reason, message
	}

	var network net.Error
	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return Denied, "the registry asks for credentials, and there are none for " + ref.Registry + "; give a username and a password, or a docker configuration that names the host"
	case errors.Is(err, errdef.ErrNotFound):
		return NotFound, "not there; check the path and the tag"
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return Invalid, "larger than anything that belongs there"
	case errors.Is(err, content.ErrMismatchedDigest),
		errors.Is(err, content.ErrTrailingData),
		strings.Contains(err.Error(), "mismatch "):
		return Invalid, "the bytes do not have the digest and size that they were announced with; the registry, or something before it, is damaged"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return Unavailable, "no answer in time; check that " + ref.Registry + " can be reached from here"
	case errors.Is(err, errStalled):
		return Unavailable, "the connection stands still; check the network and the registry"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Unavailable, "the connection was cut again and again"
	}

	return Unavailable, withoutQuery(err) + "; check that " + ref.Registry + " can be reached from here"
}

// diagnoseTLS explains what goes wrong before any request is sent; the message is empty when that
// is not it.
func diagnoseTLS(ref Reference, err error) (Reason, string) {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		broken    x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return Untrusted, "the certificate of " + ref.Registry + " is signed by an authority that is not trusted; give its CA certificate as ca.crt"
	case errors.As(err, &host):
		return Untrusted, host.Error() + "; use the name that the certificate is for"
	case errors.As(err, &broken):
		return Untrusted, "the certificate of " + ref.Registry + " is not valid: " + broken.Error()
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return Untrusted, ref.Registry + " does not speak TLS; if that is as it should be, write http:// in front of it"
	}

	return 0, ""
}

// diagnoseStatus explains an answer of the registry.
func diagnoseStatus(ref Reference, response *errcode.ErrorResponse) (Reason, string) {
	said := ""
	if len(response.Errors) > 0 {
		said = " (" + firstLine(response.Errors[0].Error()) + ")"
	}

	switch code := response.StatusCode; {
	case code == http.StatusNotFound:
		return NotFound, "not there; check the path and the tag"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return Denied, "the registry refuses the credentials for " + ref.Registry + said + "; check that they are right and allow this"
	case code == http.StatusTooManyRequests:
		return Unavailable, "the registry has had too many requests" + said + "; wait, or give credentials that allow more"
	case code >= http.StatusInternalServerError:
		return Unavailable, fmt.Sprintf("the registry answers %d %s%s", code, http.StatusText(code), said)
	default:
		return Invalid, fmt.Sprintf("the registry answers %d %s%s", code, http.StatusText(code), said)
	}
}

// urlQuery is where the signature of a URL is that a registry redirects to, and that is a
// credential.
var urlQuery = regexp.MustCompile(`\?[^\s"]*`)

// withoutQuery is an error's text without the URL that was asked for, or at least without what that
// URL asked.
func withoutQuery(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}

	return urlQuery.ReplaceAllString(firstLine(err.Error()), "")
}

func firstLine(s string) string {
	const most = 300

	line, _, _ := strings.Cut(s, "\n")

	return line[:min(len(line), most)]
}
