package oci

import (
	"context"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Reason classifies the failure of a request to a registry.
type Reason int

// Reasons of an Error.
const (
	// Unavailable means that the registry does not answer, or answers with an error of its own. The
	// same request may succeed later.
	Unavailable Reason = iota
	// NotFound means that the registry does not have the repository, tag or digest.
	NotFound
	// Denied means that the registry asks for other credentials.
	Denied
	// Untrusted means that the registry's certificate is not trusted, or that it does not use TLS.
	Untrusted
	// Invalid means that the content is not what was expected. Reading it again does not help.
	Invalid
	// Conflict means that the tag exists with other content. Tags are never overwritten.
	Conflict
)

// Error is a failed request to a registry.
type Error struct {
	// Action completes "failed to …", for example "pull".
	Action string
	// Reference is what the request was about, with its scheme.
	Reference string
	Reason    Reason
	// Message states what happened and how to fix it.
	Message string
	// Err is the cause. Do not print it: unlike Message it may contain secrets such as a signed URL.
	Err error
}

// Error returns action, reference and message.
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Action, e.Reference, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsReason reports whether an error is an *Error of the reason.
func IsReason(err error, reason Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason
}

// IsTemporary reports whether the same operation may succeed if it is retried.
func IsTemporary(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && IsReason(wrapError("", Reference{}, err), Unavailable)
}

// WrapError turns the error of a library that talks to a registry on behalf of this package's
// callers into an *Error. The name is a reference or, if it cannot be parsed as one, any text. It
// returns nil if err is nil.
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

// NewConflictError returns the error of a tag that exists with other content than wanted.
func NewConflictError(action string, ref Reference, existing, wanted ocispec.Descriptor) error {
	return &Error{
		Action:    action,
		Reference: ref.String(),
		Reason:    Conflict,
		Message: fmt.Sprintf(
			"the tag exists already with %s instead of %s; a tag is never overwritten: delete it, or use another repository",
			existing.Digest,
			wanted.Digest,
		),
	}
}

// newInvalidError returns an error of reason Invalid.
func newInvalidError(action string, ref Reference, format string, args ...any) error {
	return &Error{Action: action, Reference: ref.String(), Reason: Invalid, Message: fmt.Sprintf(format, args...)}
}

// wrapError turns an error of oras, net/http or this package into an *Error. It returns nil if err
// is nil, and cancellation as it is.
func wrapError(action string, ref Reference, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}

	reason, message := diagnose(ref, err)

	return &Error{Action: action, Reference: ref.String(), Reason: reason, Message: message, Err: err}
}
