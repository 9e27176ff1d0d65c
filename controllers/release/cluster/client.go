// Package cluster applies the objects of Helm releases to a cluster, compares them with it, and deletes them. It keeps
// what the API server said about each object.
package cluster

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

	own    OwnKinds
	target target
	// known are the objects that the release has, or may have.
	known []object.Key

	// has are the objects of the manifest, and dropped those that the release has besides. unread is why some of these
	// could not be read.
	has     []object.Key
	dropped Objects
	unread  error

	mu      sync.Mutex // guards the target's live and same, changes, created, undeleted and held
	changes Changes
	// created are the objects that did not exist before.
	created []object.Key
	// undeleted are dropped objects that could not be deleted, or are not gone yet.
	undeleted []object.Key
	// held are objects whose deletion the API server has accepted, and that finalizers held then.
	held []Remaining
}

// Changes are the changes that an action made in the cluster.
type Changes struct {
	// Adopted objects existed and belonged to no release.
	Adopted []object.Key
	// Replaced objects were deleted and recreated.
	Replaced []Replacement
	// Removals are fields of others that were removed, because they were invalid beside what is applied.
	Removals []Removal
	// Pruned objects were deleted.
	Pruned []object.Key
	// Left objects are no longer part of the release and were not deleted: their annotation asks to
	// keep them, or their kind is never deleted.
	Left []object.Key
	// Applied objects are as the release defines them, changed or not.
	Applied []object.Snapshot
}

// Replacement is an object that was deleted and recreated, because an immutable field had to change.
type Replacement struct {
	Object object.Key
	// Reason is what the API server said about the change, without values.
	Reason string
}

// Removal are fields that were removed from an object, as JSON pointers.
type Removal struct {
	Object object.Key
	Fields []string
}

// NewClient returns the client for one action on a release.
func NewClient(ctx context.Context, connection *Connection, release types.NamespacedName) *Client {
	return &Client{
		ctx: context.WithoutCancel(ctx), connection: connection, release: release, log: logr.FromContextOrDiscard(ctx),
	}
}

// SetOwnKinds sets the kinds whose objects wait for all others; see Advance.
func (c *Client) SetOwnKinds(own OwnKinds) { c.own = own }

// SetKnown sets the objects that the release has, or may have. Others are read only once the API server says that they
// exist.
func (c *Client) SetKnown(objects []object.Key) { c.known = objects }

// Adopted returns how many objects were adopted so far.
func (c *Client) Adopted() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.changes.Adopted)
}

// Changes returns what has been changed so far.
func (c *Client) Changes() Changes { return c.changes }

func (c *Client) addChange(list *[]object.Key, o *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()

	*list = append(*list, object.KeyOf(o))
}

func (c *Client) addApplied(o, live *unstructured.Unstructured) {
	snapshot := object.SnapshotOf(object.KeyOf(o), live)

	c.mu.Lock()
	defer c.mu.Unlock()

	c.changes.Applied = append(c.changes.Applied, snapshot)
}
