package source

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// IsNotFound reports whether a source was read and does not have a version.
func IsNotFound(err error) bool { return transport.Is(err, transport.NotFound) }

// IsUnavailable reports whether a source could not be read: it cannot be reached, does not work, or refuses the
// request. What was fetched from it before may then be used. It may not be used after any other error, such as content
// that is invalid or not trusted, or keys that are missing.
func IsUnavailable(err error) bool {
	var failed *transport.Error
	if !errors.As(err, &failed) {
		return errors.Is(err, context.DeadlineExceeded)
	}

	switch failed.Kind {
	case transport.Unavailable, transport.Denied, transport.InvalidToken, transport.Untrusted:
		return true
	}

	return false
}
