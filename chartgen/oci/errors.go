package oci

import (
	"context"
	"errors"
	"fmt"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// WrapError turns the error of a library that talks to a registry on behalf of this package's
// callers into a *transport.Error. The name is a reference or, if it cannot be parsed as one, any text. It
// returns nil if err is nil.
func WrapError(action, name string, err error) error {
	ref, _ := Parse(name) // without a registry if it is any text

	return wrap(action+" "+name, ref.Registry, err)
}

// NewConflictError returns the error of a tag that exists with other content than wanted.
func NewConflictError(action string, ref Reference, existing, wanted ocispec.Descriptor) error {
	return &transport.Error{
		Place:   action + " " + ref.String(),
		Kind:    transport.Conflict,
		Problem: fmt.Sprintf("the tag exists already with %s instead of %s", existing.Digest, wanted.Digest),
		Fix:     "a tag is never overwritten: delete it, or use another repository",
	}
}

// newInvalidError returns an error of kind Invalid.
func newInvalidError(action string, ref Reference, format string, args ...any) error {
	return &transport.Error{
		Place: action + " " + ref.String(), Kind: transport.Invalid, Problem: fmt.Sprintf(format, args...),
	}
}

// wrapError turns an error of oras, net/http or this package into a *transport.Error. It returns nil if err
// is nil.
func wrapError(action string, ref Reference, err error) error {
	return wrap(action+" "+ref.String(), ref.Registry, err)
}

// wrap returns the error of a request to a registry as a *transport.Error.
func wrap(place, registry string, err error) error {
	var known *transport.Error

	e := diagnose(registry, err)
	if e == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return transport.Wrap(place, registry, err)
	}

	e.Place, e.Err = place, err

	return e
}

// diagnose returns what an error of oras means; nil if it is that of another package.
func diagnose(registry string, err error) *transport.Error {
	var response *errcode.ErrorResponse

	switch {
	case err == nil:
	case errors.As(err, &response):
		e := transport.StatusError("", response.StatusCode)
		if len(response.Errors) > 0 {
			e.Problem += " (" + transport.Describe(response.Errors[0]) + ")"
		}

		return e
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return &transport.Error{
			Kind:    transport.Denied,
			Problem: "the registry asks for credentials, and there are none for " + registry,
			Fix: "give a username and a password, or a docker configuration that has them among its auths; the operator " +
				"runs no credential helpers",
		}
	case errors.Is(err, errdef.ErrNotFound):
		return &transport.Error{Kind: transport.NotFound, Problem: "not found", Fix: "check the path and the tag"}
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return &transport.Error{Kind: transport.Invalid, Problem: "larger than any such content may be"}
	case errors.Is(err, content.ErrMismatchedDigest),
		errors.Is(err, content.ErrTrailingData),
		strings.Contains(err.Error(), "mismatch "): // oras has no error value for sizes
		return &transport.Error{
			Kind:    transport.Invalid,
			Problem: "the content does not match its digest and size",
			Fix:     "check whether the registry, or a proxy in front of it, is damaged",
		}
	}

	return nil
}
