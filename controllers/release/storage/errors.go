package storage

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
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

// CheckRecords returns a *problem.Error if a release has too many records, which no program makes.
func CheckRecords(release types.NamespacedName, records []metav1.PartialObjectMetadata) error {
	if len(records) > MaxRecords {
		return problem.Fail(v1alpha2.InstallFailedReason, "release %s has more than %d revisions; delete the Secrets of the "+
			"oldest ones, which `kubectl get secrets -n %s -l %s` lists",
			release, MaxRecords, release.Namespace, Selector(release.Name))
	}

	return nil
}

// CorruptError means that a revision cannot be decoded.
type CorruptError struct {
	Secret string // namespace/name
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("Helm's record in Secret %s cannot be read: %s; the next upgrade replaces it by a new revision",
		e.Secret, e.Reason)
}
