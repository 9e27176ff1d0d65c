// Package ranges parses requested versions: exact ones, and ranges such as "~1.13".
package ranges

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Error reports a requested version that is neither a version nor a range.
type Error struct {
	// Version is the text that cannot be parsed.
	Version string
	// Err is the error of the parser.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf(
		"version %q is neither a semantic version such as v1.13.5 nor a range such as ~1.13; correct it",
		e.Version,
	)
}

// Unwrap returns the error of the parser.
func (e *Error) Unwrap() error { return e.Err }

// IsExact reports whether a requested version is a single version rather than a range.
func IsExact(version string) bool {
	_, err := semver.NewVersion(version)
	return err == nil && strings.Count(version, ".") >= 2
}

// Parse returns a function that reports whether a version matches the requested version or range; with
// an empty request, every version does. The error is an *Error.
func Parse(requested string) (matches func(*semver.Version) bool, err error) {
	if requested == "" {
		return func(*semver.Version) bool { return true }, nil
	}

	if IsExact(requested) {
		return semver.MustParse(requested).Equal, nil
	}

	constraint, err := semver.NewConstraint(requested)
	if err != nil {
		return nil, &Error{Version: requested, Err: err}
	}

	return constraint.Check, nil
}

// Exact returns the only version that a request accepts: the exact version, or the pinned one if it is in the range;
// empty if there is a choice.
func Exact(requested, pinned string) string {
	if IsExact(requested) {
		return requested
	}

	v, err := semver.NewVersion(pinned)
	if err != nil {
		return ""
	}

	matches, err := Parse(requested)
	if err != nil || !matches(v) {
		return ""
	}

	return pinned
}

// IsSame reports whether two names are the same version, with or without "v".
func IsSame(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }
