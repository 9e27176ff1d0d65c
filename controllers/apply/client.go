// Package apply makes a set of objects so in a cluster, and says of each what became of it.
package apply

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/object"
)

// Client is the Kubernetes client of one action on one release:
//   - It applies the objects of one kind in parallel, and keeps the reason for each that the API
//     server refuses.
//   - It reads an object once, if it may exist, and applies it if that changes something.
//   - It never deletes CustomResourceDefinitions and Namespaces, and never changes objects of other
//     releases.
//   - It can upgrade and uninstall a manifest with kinds that no longer exist.
type Client struct {
	ctx        context.Context // is not cancelled, so that no change stops halfway
	connection *Connection
	release    types.NamespacedName
	log        logr.Logger

	own   OwnKinds
	known []object.Key
}

// Release is what is known of a release.
type Release struct {
	types.NamespacedName

	// Inventory are the objects that the release has, or may have. Others are read only once the API server says that
	// they exist.
	Inventory []object.Key
	// Kinds are its own: their objects wait for all others, and are deleted first.
	Kinds OwnKinds
}

// NewClient returns the client for one action on a release.
func NewClient(ctx context.Context, connection *Connection, release Release) *Client {
	return &Client{
		ctx: context.WithoutCancel(ctx), connection: connection, log: logr.FromContextOrDiscard(ctx),
		release: release.NamespacedName, own: release.Kinds, known: release.Inventory,
	}
}
