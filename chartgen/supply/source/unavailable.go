package source

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// IsUnavailable reports whether a source could not be read: it cannot be reached, does not work, or
// refuses the request. What was fetched from it before may then be used. It may not be used after any
// other error, such as content that is invalid or not trusted, or keys that are missing.
func IsUnavailable(err error) bool {
	var (
		untrusted *UntrustedError
		invalid   *bundle.InvalidError

		unreachable *web.UnreachableError
		status      *web.StatusError
		limit       *web.RateLimitError
		token       *InvalidTokenError
		content     *web.ContentError
	)

	switch {
	case errors.As(err, &untrusted), errors.As(err, &invalid): // even if another attempt failed otherwise
		return false
	case oci.IsReason(err, oci.Unavailable), oci.IsReason(err, oci.Denied), oci.IsReason(err, oci.Untrusted):
		return true
	case errors.Is(err, context.DeadlineExceeded):
		return true
	}

	return errors.As(err, &unreachable) || errors.As(err, &status) || errors.As(err, &limit) ||
		errors.As(err, &token) || errors.As(err, &content) // such as a proxy's login page
}

// IsNotFound reports whether a source was read and does not have a version.
func IsNotFound(err error) bool {
	var notFound *NotFoundError
	return errors.As(err, &notFound)
}
