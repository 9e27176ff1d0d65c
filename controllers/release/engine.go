package release

import (
	"cmp"
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/object"
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
	connection *apply.Connection
	// written are the newest versions of the Secrets of releases that were written.
	written consistency.Writes[types.NamespacedName]
	// records are the newest ones of the releases that were looked at last: name -> keptRecord.
	records *lru.Cache
	// begun are the revisions whose actions this process has begun and could not record the end of: name -> number.
	begun sync.Map
}

// NewEngine returns an engine for a connection. It makes no request.
func NewEngine(connection *apply.Connection, options Options) *Engine {
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
	// Results of the objects.
	apply.Results
}

// Forget drops what is known of a release from memory.
func (e *Engine) Forget(release types.NamespacedName) {
	e.written.Forget(release)
	e.records.Remove(release)
	e.begun.Delete(release)
}

// newClient returns a client for one action on a release.
func (e *Engine) newClient(ctx context.Context, release types.NamespacedName, memory state.Memory) *apply.Client {
	return apply.NewClient(ctx, e.connection, apply.Release{
		NamespacedName: release, Inventory: memory.Inventory, Kinds: memory.Kinds,
	})
}
