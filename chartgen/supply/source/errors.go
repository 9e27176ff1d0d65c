package source

import "fmt"

// AddressError reports that an address is not that of a source.
type AddressError struct{ message string }

func (e *AddressError) Error() string { return e.message }

// NotFoundError reports that a source has no versions, or not the requested one.
type NotFoundError struct {
	// Message is the complete text for users: what was not found, where, and what there is instead.
	Message string
}

func (e *NotFoundError) Error() string { return e.Message }

// VersionError reports a requested version that is neither a version nor a range.
type VersionError struct {
	// Version is the text that cannot be parsed.
	Version string
	// Err is the error of the parser.
	Err error
}

func (e *VersionError) Error() string {
	return fmt.Sprintf(
		"version %q is neither a semantic version such as v1.13.5 nor a range such as ~1.13: %v",
		e.Version,
		e.Err,
	)
}

// Unwrap returns the error of the parser.
func (e *VersionError) Unwrap() error { return e.Err }

// UntrustedError reports that the content of a source has another digest than required, or no valid
// signature. None of it is used.
type UntrustedError struct {
	// Message is the complete text for users.
	Message string
}

func (e *UntrustedError) Error() string { return e.Message }

// InvalidTokenError reports that a server refuses the token that was sent.
type InvalidTokenError struct{ err error }

func (e *InvalidTokenError) Error() string {
	return fmt.Sprintf("%v; the token (GITHUB_TOKEN, or token, in the Secret) is wrong or has expired", e.err)
}

// Unwrap returns the *web.StatusError.
func (e *InvalidTokenError) Unwrap() error { return e.err }
