package storage

import (
	"errors"
	"fmt"

	"github.com/capstan-project/capstan/controllers/object"
)

// ErrChanged means that a release has changed since it was observed. Nothing was done; observe it
// again.
var ErrChanged = errors.New("the release has changed since it was observed")

// Error means that a revision could not be written. What was applied stays applied.
type Error struct {
	Secret string // namespace/name
	Reason string
	cause  error
}

// NewError returns the error for a Secret, namespace/name, that the API server did not write.
func NewError(secret string, err error) *Error {
	return &Error{Secret: secret, Reason: object.Reason("Secret", err), cause: err}
}

func (e *Error) Error() string {
	return fmt.Sprintf("Helm's record in Secret %s could not be stored: %s%s", e.Secret, e.Reason, object.Fix(e.cause))
}

// Unwrap returns the API server's error.
func (e *Error) Unwrap() error { return e.cause }

// CorruptError means that a revision cannot be decoded.
type CorruptError struct {
	Secret string // namespace/name
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("Helm's record in Secret %s cannot be read: %s; the next upgrade replaces it by a new revision",
		e.Secret, e.Reason)
}
