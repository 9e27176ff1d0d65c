package release

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Options of an Engine. Fields that are zero have their defaults.
type Options struct {
	// LockTimeout is how long another program, such as helm upgrade, may go without writing to a
	// release before it is considered dead. Default: 5m.
	LockTimeout time.Duration
	// Records returns the metadata of the Secrets of a release, with managed fields that have the time of the
	// last write, from a cache; it returns false if that does not have them. It is optional.
	Records func(context.Context, types.NamespacedName) ([]metav1.PartialObjectMetadata, bool)
}

// Engine runs the releases of one cluster. It is safe for concurrent use by several releases; the caller runs one
// action on a release at a time.
type Engine struct {
	options    Options
	connection *cluster.Connection
	// written are the newest versions of the Secrets of releases that were written.
	written consistency.Writes[types.NamespacedName]
	// records are the newest ones of the releases that were looked at last: name -> keptRecord.
	records *lru.Cache
}

// NewEngine returns an engine for a connection. It makes no request.
func NewEngine(connection *cluster.Connection, options Options) *Engine {
	options.LockTimeout = cmp.Or(options.LockTimeout, 5*time.Minute)

	return &Engine{options: options, connection: connection, records: lru.New(keptRecords)}
}

// Determine returns the state of a release, where digest identifies its desired state.
func (e *Engine) Determine(history state.History, digest string) state.Observed {
	return state.Determine(history, digest, e.Rules())
}

// Rules returns what the states of releases are determined by.
func (e *Engine) Rules() state.Rules {
	return state.Rules{
		LockTimeout: e.options.LockTimeout,
		Now:         time.Now(),
	}
}

// Result is what an action did.
type Result struct {
	// Revision and Status are the last write to the newest revision; zero if nothing was written.
	// They are independent of the error: an action that failed may have written a revision, and one
	// that succeeded may not have been able to.
	Revision int
	Status   v1alpha2.RevisionStatus
	// Wave is how far Advance has got with the revision; nil once it is complete.
	Wave *int
	// Inventory are the objects that the release has, or may have; nil if that is as before.
	Inventory []object.Key

	cluster.Changes
}

// RollbackOptions are the options of a rollback.
type RollbackOptions struct {
	// Target is the revision to roll back to.
	Target state.Revision
	// Digest of the desired state that the rollback represents. Default: that of the revision, so
	// that the release is in sync with what was desired then, unless Paused changes it.
	Digest string
	// Paused scales the Deployments of the revision to zero; otherwise they get their usual replicas.
	Paused bool
	// Reason for the history.
	Reason string
	// Owner, Own and HistoryLimit are the same as in Spec.
	Owner        state.Owner
	Own          cluster.OwnKinds
	HistoryLimit int
	// Request that the rollback results from; zero if it was not requested.
	Request v1alpha2.RevisionRequest
	// Announce is called before the revision is written; it may be nil.
	Announce state.Announce
	// Known, Last and Inventory are the same as in PrepareOptions.
	Known     []state.Revision
	Last      int
	Inventory []object.Key
	// SkipUnknownKinds leaves out the objects whose kinds the API server does not serve, instead of
	// failing with a *cluster.UnknownKindError.
	SkipUnknownKinds bool
}

// Rollback applies the objects of an earlier revision, by a new revision. Objects that later
// revisions have added are deleted, those that they dropped are recreated. It does not touch CRDs
// and the history. Otherwise it is like Prepare and Prepared.Apply; a revision that does not exist is a
// *problem.Error.
func (e *Engine) Rollback(
	ctx context.Context,
	release types.NamespacedName,
	options RollbackOptions,
	observed state.Observed,
) (Result, error) {
	return e.run(ctx, release, observed, func(s *session) error { return s.rollback(ctx, options, observed) })
}

func (e *Engine) run(
	ctx context.Context,
	release types.NamespacedName,
	observed state.Observed,
	action func(*session) error,
) (Result, error) {
	if observed.State == state.Locked {
		return Result{}, locked(observed)
	}

	return e.newSession(ctx, release).run(action)
}

// UninstallOptions are the options of Engine.Uninstall.
type UninstallOptions struct {
	// Newest is the newest revision as it was observed; zero if the release has no records.
	Newest state.Revision
	// Inventory are the objects that the release has, or may have.
	Inventory []object.Key

	cluster.RemoveOptions
}

// Uninstall deletes the release: the objects of its inventory, and its history, whatever that says.
//
// It keeps CRDs, Namespaces and objects with the annotation "helm.sh/resource-policy: keep". It can be called at any
// time, whatever state an earlier attempt or another program has left, also if there are no records. The error wraps
// storage.ErrChanged if the newest revision is no longer the one that was observed.
//
// Objects are deleted in the order of their annotations, and those of the release's own kinds first: only the
// release's manager can process their finalizers. While one still exists that others wait for, the error is a
// *cluster.RemainingError and these are not deleted.
func (e *Engine) Uninstall(
	ctx context.Context, release types.NamespacedName, options UninstallOptions,
) (Result, error) {
	defer e.written.Note(release, "")

	return e.run(ctx, release, state.Observed{}, func(s *session) error { return s.uninstall(ctx, options) })
}

// Forget drops what is known of a release from memory.
func (e *Engine) Forget(release types.NamespacedName) {
	e.written.Forget(release)
	e.records.Remove(release)
}

// newClient returns a client for one action on a release.
func (e *Engine) newClient(ctx context.Context, release types.NamespacedName) *cluster.Client {
	return cluster.NewClient(ctx, e.connection, release)
}
