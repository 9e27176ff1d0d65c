// Package source lists the versions of a provider and fetches their components, wherever they are
// published: GitHub, GitLab, plain web servers, OCI registries, ConfigMaps or a folder. All of these
// implement Source.
package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Version is one version of a provider in a source.
type Version struct {
	// Name is the version with a leading "v", for example "v1.13.5".
	Name string
	// ID identifies the version within its source: "ConfigMap <name>", the name of a folder, or the
	// same as Name.
	ID string
	// Fingerprint changes whenever the files may have changed. Computing it does not read them.
	Fingerprint string
	// Origin is the exact place of the version, in a form for users, if the files there never
	// change. What was fetched from an origin once need not be fetched again. It is empty for places
	// that may change, which are cheap to read every time.
	Origin string
	// Unprefixed is the origin if the version is published without its "v"; empty if the source knows
	// only one. Which of the two it is may be known only when the version is fetched.
	Unprefixed string
}

// isPrerelease reports whether the version has a pre-release suffix such as "-rc.1".
func (v Version) isPrerelease() bool {
	parsed, err := semver.NewVersion(v.Name)
	return err == nil && parsed.Prerelease() != ""
}

// Source is a place that publishes versions of one provider.
type Source interface {
	// Versions lists the available versions, newest first. It returns a *NotFoundError if there are
	// none.
	Versions(ctx context.Context) ([]Version, error)
	// Fetch reads the files of a version. It returns a *bundle.InvalidError if they are incomplete
	// or malformed.
	Fetch(ctx context.Context, version Version) (*bundle.Bundle, error)
}

// Remote is a source that is reached over the network: it may be slow, unreachable or limit the
// number of requests.
type Remote interface {
	Source
	// Version returns the Version of a name such as "v1.13.5" without a request. It need not exist.
	Version(name string) Version
	// DefaultVersion returns the exact version that is part of the source's address; empty if there
	// is none.
	DefaultVersion() string
	// Metadata reads the metadata.yaml of a version and nothing else. It returns a *NotFoundError if
	// the version does not exist.
	Metadata(ctx context.Context, version Version) ([]byte, error)
}

// AddressError reports that an address is not that of a source.
type AddressError struct{ message string }

func (e *AddressError) Error() string { return e.message }

// NotFoundError reports that a source has no versions, or not the requested one.
type NotFoundError struct {
	// Message is the complete text for users: what was not found, where, and what there is instead.
	Message string
}

func (e *NotFoundError) Error() string { return e.Message }

// ConditionError reports that none of the versions that match a request meets its condition.
type ConditionError struct {
	// Requested is the range; empty if any version was requested.
	Requested string
	// Newest is the newest version that matches, and Err why it does not meet the condition.
	Newest string
	Err    error
}

func (e *ConditionError) Error() string {
	which := "no version on offer"
	if e.Requested != "" {
		which = "no version in the range " + e.Requested
	}

	return fmt.Sprintf("%s can be used; the newest is %s: %v", which, e.Newest, e.Err)
}

// Unwrap returns why the newest version cannot be used.
func (e *ConditionError) Unwrap() error { return e.Err }

// UntrustedError reports that the content of a source has another digest than required, or no valid
// signature. None of it is used.
type UntrustedError struct {
	// Message is the complete text for users.
	Message string
}

func (e *UntrustedError) Error() string { return e.Message }

// InvalidTokenError reports that a server refuses the token that was sent.
type InvalidTokenError struct {
	message string
	err     error
}

func (e *InvalidTokenError) Error() string { return e.message }

// Unwrap returns the *web.StatusError.
func (e *InvalidTokenError) Unwrap() error { return e.err }

// Limits of what a server lists and of the cluster templates of a version. Real projects have at most
// 300 versions, with 60 files each, and 27 templates of 240 KB together.
const (
	maxEntries       = 10000
	maxListValues    = 1500000
	maxTemplates     = 200
	maxTemplatesSize = 16 << 20
)

// isTemplate reports whether a file of a provider is a cluster template or a ClusterClass. Only infrastructure
// providers have these, as in clusterctl.
func isTemplate(provider bundle.Provider, name string) bool {
	return provider.Type == string(v1alpha2.InfrastructureProviderType) && bundle.IsTemplate(name)
}

// checkTemplates returns a *bundle.InvalidError if there are too many templates, or if they are too
// large.
func checkTemplates(templates []bundle.File) error {
	size := 0
	for _, t := range templates {
		size += len(t.Data)
	}

	if len(templates) <= maxTemplates && size <= maxTemplatesSize {
		return nil
	}

	return &bundle.InvalidError{
		File: templates[len(templates)-1].Name,
		Reason: fmt.Sprintf("a version may have at most %d cluster templates with %d MiB together; publish fewer",
			maxTemplates, maxTemplatesSize>>20),
	}
}

// checkCount returns a *bundle.InvalidError if a list has too many entries.
func checkCount(list, entries string, count int) error {
	if count <= maxEntries {
		return nil
	}

	return &bundle.InvalidError{File: list, Reason: fmt.Sprintf("lists more than %d %s", maxEntries, entries)}
}

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
