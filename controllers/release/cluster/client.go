// Package cluster applies the objects of Helm releases to a cluster and deletes them. Helm decides
// what to do; Capstan does it with fewer requests, and keeps what the API server said about each
// object.
package cluster

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/object"
)

// Client is the Kubernetes client of one action on one release. Helm calls it to create, update and
// delete objects. It differs from Helm's own client:
//   - It applies the objects of one kind in parallel, and keeps the reason for each that the API
//     server refuses.
//   - It reads an object once and writes it at most once, if there is something to change.
//   - It never deletes CustomResourceDefinitions and Namespaces, and never changes objects of other
//     releases.
//   - It can upgrade and uninstall a manifest with kinds that no longer exist.
//
// Everything else is Helm's. The client embeds *kube.Client and not
// kube.Interface because Helm's actions ask for optional interfaces.
type Client struct {
	*kube.Client

	connection *Connection
	release    types.NamespacedName
	log        logr.Logger

	own        OwnKinds
	target     target
	absent     func(schema.GroupVersionResource, types.NamespacedName) bool
	incomplete []string // manifests
	hooks      hookBudget
	longWait   func(what string)

	unpruned bool

	mu      sync.Mutex // guards changes
	changes Changes
	err     error // the first; Helm returns its text at best
}

// Changes are the changes that an action made in the cluster.
type Changes struct {
	// Adopted objects existed and belonged to no release.
	Adopted []object.Key
	// Replaced objects were deleted and recreated, because an immutable field had to change.
	Replaced []object.Key
	// Pruned objects were deleted.
	Pruned []object.Key
	// Left objects are no longer part of the release and were not deleted: their annotation asks to
	// keep them, their kind is never deleted, or they no longer belong to the release. Objects
	// whose chart asks to keep them are not listed.
	Left []object.Key
	// Applied objects are as the release defines them, changed or not.
	Applied []object.Snapshot
}

var _ kube.Interface = (*Client)(nil)

// NewClient returns the client for one action on a release. Helm logs to the given function. longWait is called
// when the action has to wait for something.
func NewClient(
	connection *Connection,
	release types.NamespacedName,
	log logr.Logger,
	helmLog func(string, ...any),
	longWait func(what string),
) *Client {
	c := kube.New(connection)
	c.Namespace = release.Namespace
	c.Log = helmLog

	return &Client{Client: c, connection: connection, release: release, log: log, longWait: longWait}
}

// SetIncomplete sets the manifests of revisions that may have been applied in part. Their objects
// are deleted with those of the revision that the action starts from.
func (c *Client) SetIncomplete(manifests []string) { c.incomplete = manifests }

// SetOwnKinds sets the kinds whose objects wait for all others; see Advance.
func (c *Client) SetOwnKinds(own OwnKinds) { c.own = own }

// SetAbsent sets a function that reports whether an object is known not to exist, so that SetTarget need not read it.
// Another program may create it meanwhile: the action finds that out when it creates the object itself, and then reads
// whom it belongs to.
func (c *Client) SetAbsent(absent func(schema.GroupVersionResource, types.NamespacedName) bool) {
	c.absent = absent
}

// Err returns the first error.
func (c *Client) Err() error { return c.err }

// Adopted returns how many objects were adopted so far.
func (c *Client) Adopted() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.changes.Adopted)
}

// Changes returns what has been changed so far.
func (c *Client) Changes() Changes { return c.changes }

// IsReachable makes no request: the first request of the action shows whether the API server
// responds.
func (c *Client) IsReachable() error { return nil }

// Build returns the objects of a manifest. In strict mode, which Helm uses for hooks, an unknown
// kind is an error. Otherwise its objects are omitted, so that a release can be upgraded and
// removed after its kinds. The API server validates the objects later.
func (c *Client) Build(reader io.Reader, strict bool) (kube.ResourceList, error) {
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}

	if c.target.objects != nil && string(content) == c.target.manifest {
		return c.target.objects, nil
	}

	list, unknown, err := c.parse(string(content))
	if err != nil {
		return nil, c.fail(err)
	}

	if strict && len(unknown) > 0 {
		return nil, c.fail(&UnknownKindError{Objects: unknown})
	}

	for _, key := range unknown {
		c.log.Info("Skipping an object whose kind no longer exists", "object", key.String())
	}

	return list, nil
}

// Create creates the objects of the target, or of a hook.
func (c *Client) Create(list kube.ResourceList) (*kube.Result, error) {
	if c.target.includes(list) {
		return c.Update(nil, list, false)
	}

	return &kube.Result{}, c.fail(c.each(list, func(info *resource.Info) error {
		_, err := c.helper(info).Create(info.Namespace, true, info.Object)
		return err
	}))
}

// WatchUntilReady waits until the objects of a hook are ready: Jobs and Pods have completed. total is the
// time for all hooks of the action.
func (c *Client) WatchUntilReady(list kube.ResourceList, total time.Duration) error {
	left, err := c.hooks.take(total, time.Now())
	if err != nil {
		return err
	}

	return c.await("hook", list, func() error { return c.Client.WatchUntilReady(list, left) })
}

// WaitForDelete waits until the objects of a hook are gone, within the same time.
func (c *Client) WaitForDelete(list kube.ResourceList, total time.Duration) error {
	left, err := c.hooks.left(total, time.Now())
	if err != nil {
		return err
	}

	deleted := deletable(list)

	return c.await("the deletion of hook", deleted, func() error { return c.Client.WaitForDelete(deleted, left) })
}

// await waits for something about the objects of a hook, and names them in what is shown meanwhile and in the
// error.
func (c *Client) await(what string, list kube.ResourceList, wait func() error) error {
	for _, info := range list {
		what += " " + KeyOf(info).String()
	}

	if err := awaitHook(wait, func() { c.longWait(what) }); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	return nil
}

// Update replaces the original objects by those of the target.
func (c *Client) Update(original, target kube.ResourceList, _ bool) (*kube.Result, error) {
	return &kube.Result{}, c.fail(c.apply(original, target)) // Helm reads the result even after an error
}

// UpdateThreeWayMerge is the same as Update, which always merges three ways.
func (c *Client) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.Update(original, target, force)
}

// Delete deletes the objects of a hook, unless they are of a protected kind.
func (c *Client) Delete(list kube.ResourceList) (*kube.Result, []error) {
	return deleteResult(c.fail(c.each(deletable(list), func(info *resource.Info) error { return c.delete(info, nil) })))
}

func deletable(list kube.ResourceList) kube.ResourceList {
	return list.Filter(func(info *resource.Info) bool { return !isProtected(KeyOf(info).Kind) })
}

// DeleteWithPropagationPolicy deletes the objects of the release, including those of incomplete
// revisions.
func (c *Client) DeleteWithPropagationPolicy(
	list kube.ResourceList,
	_ metav1.DeletionPropagation,
) (*kube.Result, []error) {
	incomplete, err := c.incompleteObjects()
	if err != nil {
		return deleteResult(c.fail(err))
	}

	all := append([]kube.ResourceList{list}, incomplete...)

	return deleteResult(c.fail(c.remove(missing(all, nil))))
}

func deleteResult(err error) (*kube.Result, []error) {
	if err != nil {
		return &kube.Result{}, []error{err}
	}

	return &kube.Result{}, nil
}

// GetPodList returns no pods. Helm reads the logs of hooks through it, which are not shown
// anywhere.
func (c *Client) GetPodList(string, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{}, nil
}

// fail keeps the first error for the caller of the action.
func (c *Client) fail(err error) error {
	if c.err == nil {
		c.err = err
	}

	return err
}

func (c *Client) addChange(list *[]object.Key, info *resource.Info) {
	c.mu.Lock()
	defer c.mu.Unlock()

	*list = append(*list, KeyOf(info))
}

func (c *Client) addApplied(info *resource.Info, live *unstructured.Unstructured) {
	snapshot := object.SnapshotOf(KeyOf(info), live)

	c.mu.Lock()
	defer c.mu.Unlock()

	c.changes.Applied = append(c.changes.Applied, snapshot)
}

// KeyOf returns the key of an object.
func KeyOf(info *resource.Info) object.Key {
	return object.Key{GroupVersionKind: info.Mapping.GroupVersionKind, Namespace: info.Namespace, Name: info.Name}
}
