package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/object"
)

// KindError means that the objects of a kind could not be listed.
type KindError struct {
	Kind schema.GroupKind
	// Reason is what the API server said.
	Reason string
	cause  error
	// unserved is set if the kind's API does not respond.
	unserved bool
}

func newKindError(kind schema.GroupKind, err error) *KindError {
	return &KindError{
		Kind: kind, Reason: object.Reason(kind.Kind, err), cause: err, unserved: apierrors.IsServiceUnavailable(err),
	}
}

// newUnservedError returns the error for a kind whose API cannot be discovered.
func newUnservedError(kind schema.GroupKind, err error) *KindError {
	e := newKindError(kind, err)
	e.unserved = true

	return e
}

func (e *KindError) Error() string { return e.Kind.String() + ": " + e.Reason }

// Unwrap returns the API server's error.
func (e *KindError) Unwrap() error { return e.cause }

// SearchError means that kinds could not be searched for the objects of a release.
type SearchError struct {
	Release string // namespace/name
	Kinds   []*KindError
}

// newSearchError returns the error for kinds that could not be searched; nil if there are none.
func newSearchError(release types.NamespacedName, kinds []*KindError) error {
	if len(kinds) == 0 {
		return nil
	}

	slices.SortFunc(kinds, func(a, b *KindError) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })

	return &SearchError{Release: release.String(), Kinds: kinds}
}

func (e *SearchError) Error() string {
	first := e.Kinds[0]

	others := ""
	if more := len(e.Kinds) - 1; more > 0 {
		others = fmt.Sprintf(" (and %d more kinds)", more)
	}

	return fmt.Sprintf("it is unknown whether release %s still has objects of the kind %s%s: %s%s",
		e.Release, first.Kind, others, first.Reason, first.fix())
}

// Unwrap returns the error of each kind.
func (e *SearchError) Unwrap() []error {
	errs := make([]error, 0, len(e.Kinds))
	for _, kind := range e.Kinds {
		errs = append(errs, kind)
	}

	return errs
}

// fix returns what makes the kind readable.
func (e *KindError) fix() string {
	switch {
	case strings.Contains(e.Reason, "conversion webhook"):
		return "; repair the webhook's server, or set spec.conversion.strategy of the kind's " +
			"CustomResourceDefinition to None"
	case e.unserved:
		return fmt.Sprintf("; check the APIService of %s and the server behind it", e.Kind.Group)
	default:
		return object.Fix(e.cause)
	}
}
