// Package offers asks the sources of providers, in the background, which versions they offer, and selects the version
// of an automatic upgrade as spec.upgradePolicy says.
//
// Decisions follow from status.history, the source's answer and the spec, so a restarted operator decides as the one
// before it. An automatic upgrade is recorded with its revision as a request of its own: v1alpha2.RevisionRequest has
// it. If the upgrade fails and is rolled back, the version before it is what is asked for again. The failed version is
// given up until a user asks for something else.
package offers

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/seats"
)

const (
	// maxAge is how long an answer of a source is used.
	maxAge = time.Hour
	// lookupTimeout bounds a lookup.
	lookupTimeout = 2 * time.Minute
	// workers is how many sources are asked at a time.
	workers = 4
	// seatDelay is when a lookup is tried again for which too many others of the namespace wait.
	seatDelay = time.Second
)

// Tracker looks up what sources offer. It is a Runnable of the manager: a few workers ask the sources, each provider's
// at most once an hour or on request, and no reconcile waits for them. A restart loses the answers; nothing that is
// installed depends on them.
type Tracker struct {
	sources *fetch.Resolver
	wake    health.Wake
	queue   workqueue.TypedDelayingInterface[types.UID]
	seats   *seats.Seats

	mu      sync.Mutex
	lookups map[types.UID]*lookup
}

// lookup is what the source of a provider answered last.
type lookup struct {
	// provider as it was when the lookup was requested.
	provider v1alpha2.Provider
	asked    time.Time
	answer   Answer
	// isNews reports whether the provider has to know the answer that is on its way; nil if it always has to.
	isNews func(context.Context, []v1alpha2.AvailableUpgrade) bool
}

// NewTracker returns a tracker that wakes a provider when its source has answered. The sources must have no seats: the
// tracker has its own.
func NewTracker(sources *fetch.Resolver, wake health.Wake) *Tracker {
	return &Tracker{
		sources: sources,
		wake:    wake,
		queue:   workqueue.NewTypedDelayingQueue[types.UID](),
		seats:   seats.New(workers),
		lookups: map[types.UID]*lookup{},
	}
}

// Start runs the workers until ctx ends.
func (t *Tracker) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)

	for range workers {
		group.Go(func() error {
			for t.next(ctx) {
			}

			return nil
		})
	}

	<-ctx.Done()
	t.queue.ShutDown()

	return group.Wait()
}

// Answer is what a provider's source offered when it was last looked up.
type Answer struct {
	// Answered is set once the source has said what it offers, and Offered is that, newest first.
	Answered bool
	Offered  []v1alpha2.AvailableUpgrade
	// Pending is set while a lookup is on its way.
	Pending bool
}

// Look returns the last answer of a provider's source. If that is too old, or older than since, it queues a lookup.
// It makes no request itself.
func (t *Tracker) Look(provider v1alpha2.Provider, since time.Time) Answer {
	t.mu.Lock()
	defer t.mu.Unlock()

	uid := provider.GetUID()

	last := t.lookups[uid]
	if last == nil || last.outdated(provider) || last.asked.Before(since) {
		last = t.request(last, provider)
	}

	return last.answer
}

// WakeForNews limits the wake-ups of a provider whose lookup is pending: its answer wakes the provider only if isNews
// reports true for it, or if the answer has come already. After a restart the operator looks up every source, and most
// answers confirm what the resources show.
func (t *Tracker) WakeForNews(
	provider v1alpha2.Provider, isNews func(context.Context, []v1alpha2.AvailableUpgrade) bool,
) {
	t.mu.Lock()
	defer t.mu.Unlock()

	l := t.lookups[provider.GetUID()]

	switch {
	case l == nil:
	case l.answer.Pending:
		l.isNews = isNews
	default:
		t.wake(v1alpha2.Label(provider), provider.GetNamespace(), 0)
	}
}

// outdated reports whether the source must be asked again: after an hour, on request, or because
// another source is configured.
func (l *lookup) outdated(provider v1alpha2.Provider) bool {
	return time.Since(l.asked) > maxAge ||
		requestOf(l.provider) != requestOf(provider) ||
		!sameSource(l.provider, provider)
}

func requestOf(p v1alpha2.Provider) string {
	return p.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]
}

func sameSource(a, b v1alpha2.Provider) bool {
	return equality.Semantic.DeepEqual(a.GetSpec().FetchConfig, b.GetSpec().FetchConfig)
}

// request enqueues a lookup. What the same source answered before is used until it has answered
// again. t.mu is held.
func (t *Tracker) request(before *lookup, provider v1alpha2.Provider) *lookup {
	next := &lookup{provider: provider.DeepCopyObject().(v1alpha2.Provider), asked: time.Now()}

	if before != nil && sameSource(before.provider, provider) {
		next.answer = before.answer
	}

	next.answer.Pending = true

	t.lookups[provider.GetUID()] = next
	t.queue.Add(provider.GetUID())

	return next
}

// next looks up one provider; false means that the tracker stops.
func (t *Tracker) next(ctx context.Context) bool {
	uid, shutdown := t.queue.Get()
	if shutdown {
		return false
	}
	defer t.queue.Done(uid)

	t.mu.Lock()
	l := t.lookups[uid]
	t.mu.Unlock()

	if l == nil {
		return true
	}

	done, err := t.seats.Take(l.provider.GetNamespace())
	if err != nil {
		t.queue.AddAfter(uid, seatDelay)
		return true
	}
	defer done()

	t.ask(ctx, l)

	return true
}

// ask asks the source of a provider, and wakes the provider when it has answered.
func (t *Tracker) ask(ctx context.Context, l *lookup) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	offered, err := List(ctx, t.sources, l.provider)

	t.mu.Lock()
	isNews := l.isNews
	l.isNews, l.answer.Pending = nil, false

	if err == nil {
		l.answer.Answered, l.answer.Offered = true, offered
	}
	t.mu.Unlock()

	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Cannot look up the source", "error", err.Error())
		return
	}

	if isNews == nil || isNews(ctx, offered) {
		t.wake(v1alpha2.Label(l.provider), l.provider.GetNamespace(), 0)
	}
}

// Forget drops the answer for a provider that is gone.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.lookups, uid)
}
