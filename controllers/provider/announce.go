package provider

import (
	"context"
	"sync"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// locks are locks by key. They are safe for concurrent use, and their zero value is ready to use.
type locks struct {
	mu    sync.Mutex
	byKey map[string]*keyLock
}

// keyLock is the lock of one key, which is forgotten once it has no users: clusters come and go.
type keyLock struct {
	sync.Mutex
	users int
}

// lock locks a key, and returns what unlocks it.
func (l *locks) lock(key string) (unlock func()) {
	l.mu.Lock()

	if l.byKey == nil {
		l.byKey = map[string]*keyLock{}
	}

	if l.byKey[key] == nil {
		l.byKey[key] = &keyLock{}
	}

	lock := l.byKey[key]
	lock.users++

	l.mu.Unlock()
	lock.Lock()

	return func() {
		lock.Unlock()

		l.mu.Lock()
		defer l.mu.Unlock()

		if lock.users--; lock.users == 0 {
			delete(l.byKey, key)
		}
	}
}

// announceChange makes the change known in the status before it begins, if the other resources of the cluster still let
// it begin: they may have begun to change since the first look at them. One resource of a cluster is announced at a
// time, so that each sees what those before it have announced.
func (r *run) announceChange(ctx context.Context) Result {
	defer r.announcements.lock(r.Clusters.Identity(r.provider))()

	if result := r.confirm(ctx); result.Ends() {
		return result
	}

	next := max(r.installed.revision.Number, state.Last(r.provider.GetStatus())) + 1

	err := r.record(ctx, func(status *v1alpha2.ProviderStatus) {
		state.Begin(status, !r.policy.Existed, next, r.change.plan.Version)

		if r.selection.Starts() {
			upgrade := r.selection.Started(r.installed.revision.Number, time.Now())
			status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Last: &upgrade}
		}
	})
	if err != nil {
		return failed(err, applying)
	}

	r.status.doing(ctx, checking)

	if r.selection.Starts() {
		r.emit(r.provider, upgradeStarted(r.selection.String()))
	}

	return Result{}
}

// confirm looks at the other resources once more, as they are now.
func (r *run) confirm(ctx context.Context) Result {
	if err := r.Client.Wait(ctx); err != nil {
		return failed(err, applying)
	}

	current := &preflight.Checker{Client: r.Client, Cluster: r.Clusters.Identity}

	if !r.policy.Existed {
		recorded := func(v1alpha2.Provider) bool { return false } // was asked before, and takes requests
		if err := current.Identity(ctx, r.provider, recorded); err != nil {
			return failed(err, applying)
		}
	}

	if r.changesVersion() {
		if err := current.Turn(ctx, r.provider, r.change.goal.contract); err != nil {
			return failed(err, applying)
		}
	}

	return Result{}
}
