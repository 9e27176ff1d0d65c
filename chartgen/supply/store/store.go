// Package store keeps charts: what was generated once is not generated again, and what a release
// was made from can be read later.
package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// ErrNotFound says that a store does not hold the chart, or holds it damaged; generating it and
// calling Put mends both.
var ErrNotFound = errors.New("chart not found in the store")

// Key names a chart in a store.
type Key struct {
	// Namespace of the provider the chart is kept for.
	Namespace string
	// Provider is the provider's label, for example "infrastructure-aws".
	Provider string
	// Version of the provider, with its "v".
	Version string
	// ContentID of what the chart is generated from.
	ContentID string
	// Origin is where that came from, see source.Release; empty when it can change there.
	Origin string
}

// Query asks for a chart without knowing what it was generated from.
type FindOptions struct {
	// Namespace, Provider and Version as in Key.
	Namespace, Provider, Version string
	// Origin as in Key; empty means any.
	Origin string
	// Digest of the chart to prefer where several were made under one version; else it is the one
	// made last.
	PreferDigest string
}

// foreign begins the content ID of a chart that chartgen did not make.
const prebuiltPrefix = "sha256:"

// ForeignID is the content ID of a chart that was fetched as it is: the digest of its archive.
func PrebuiltContentID(c *chart.Chart) (string, error) {
	archive, err := c.Archive()
	return chart.Digest(archive), err
}

// Foreign reports whether the chart was fetched as it is. Nobody but who asked for it gets it.
func (k Key) IsPrebuilt() bool { return strings.HasPrefix(k.ContentID, prebuiltPrefix) }

// Stored is a chart as a store holds it.
type Stored struct {
	Chart *chart.Chart
	// Reference says where it is kept, for people and for status.
	Reference string
	// Digest is the OCI digest of the archive.
	Digest string
	// Size of the archive in bytes.
	Size int
	// Foreign says that the chart was fetched as it is: it has whatever format it has.
	Prebuilt bool
	// Unshared is why a chart that was just put is in the cluster only, and not in the registry
	// yet.
	PushErr error
}

// Store keeps charts. Charts never change: another content has another key.
type Store interface {
	// Get reads a chart; ErrNotFound when it must be generated.
	Get(ctx context.Context, key Key) (*Stored, error)
	// Find reads a chart of a version; ErrNotFound when there is none.
	Find(ctx context.Context, query FindOptions) (*Stored, error)
	// Put keeps a chart. Putting the same chart again changes nothing.
	Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error)
	// Prune forgets charts that nobody needs: those of a provider in a namespace that were put
	// before a time and whose digests are not among those to keep.
	Prune(ctx context.Context, namespace, provider string, keep []string, before time.Time) error
	// Delete forgets all charts of a provider in a namespace.
	Delete(ctx context.Context, namespace, provider string) error
}
