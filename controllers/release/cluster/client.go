// Package cluster applies the objects of Helm releases to a cluster, compares them with it, and deletes them. It keeps
// what the API server said about each object.
package cluster

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
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

	// own are the kinds whose objects wait for all others; see Advance.
	own OwnKinds
	// known are the objects that the release has, or may have. Others are read only once the API server says that they
	// exist.
	known []object.Key
}

// NewClient returns the client for one action on a release, given what is known of that.
func NewClient(
	ctx context.Context, connection *Connection, release types.NamespacedName, memory state.Memory,
) *Client {
	return &Client{
		ctx: context.WithoutCancel(ctx), connection: connection, release: release, log: logr.FromContextOrDiscard(ctx),
		own: memory.Kinds, known: memory.Inventory,
	}
}
