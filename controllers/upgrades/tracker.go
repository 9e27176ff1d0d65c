// Package upgrades asks the sources of providers, in the background, which versions they offer and
// whether they still have what is in use.
package upgrades

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
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/health"
)

const (
	// maxAge is how long an answer of a source is used.
	maxAge = time.Hour
	// lookupTimeout bounds a lookup.
	lookupTimeout = 2 * time.Minute
	// workers is how many sources are asked at a time.
	workers = 4
)

// Tracker knows what sources offer. It is a Runnable of the manager: sources are asked by a few
// workers, each provider's at most once an hour or on request, and nothing waits for them. What it
// knows is lost with a restart and found out again; nothing that is installed depends on it.
type Tracker struct {
	sources *fetch.Resolver
	wake    health.Wake
	queue   workqueue.TypedInterface[types.UID]

	mu      sync.Mutex
	lookups map[types.UID]*lookup
}

// lookup is what the source of a provider answered last.
type lookup struct {
	// provider as it was when the lookup was requested.
	provider v1alpha2.Provider
	asked    time.Time
	offer    *offer
	// move is that of the chart's tag, nil if it has not moved; checked is set once that is known.
	move    *Move
	checked bool
	// answered is set once the source has answered, or cannot.
	answered bool
}

// offer is what a source offers.
type offer struct {
	versions []source.Version // newest first
	metadata *bundle.Metadata // of the newest version; it lists the contracts of all
}

// NewTracker returns a tracker that wakes a provider when its source has answered.
func NewTracker(sources *fetch.Resolver, wake health.Wake) *Tracker {
	return &Tracker{
		sources: sources,
		wake:    wake,
		queue:   workqueue.NewTyped[types.UID](),
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

// Known is what is known of a provider's source. It may be nil.
type Known struct {
	offer *offer
	// Move of the tag that the chart in use came from; nil if it has not moved.
	Move *Move
	// Checked reports whether the tag was looked up.
	Checked bool
	// Pending is set while a lookup is on its way.
	Pending bool
}

// Look returns what is known of a provider's source, and requests a lookup if that is too old, or older than
// since. It makes no request itself.
func (t *Tracker) Look(provider v1alpha2.Provider, since time.Time) Known {
	t.mu.Lock()
	defer t.mu.Unlock()

	uid := provider.GetUID()

	known := t.lookups[uid]
	if known == nil || known.outdated(provider) || known.asked.Before(since) {
		known = t.request(known, provider)
	}

	result := Known{offer: known.offer, Checked: known.checked, Pending: !known.answered}
	if chart := provider.GetStatus().Chart; known.move != nil && chart != nil && known.move.chart == *chart {
		result.Move = known.move
		result.Checked = true
	}

	return result
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
		next.offer = before.offer
		next.move = before.move
		next.checked = before.checked
	}

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

	if l != nil {
		t.ask(ctx, l)
	}

	return true
}

// ask asks the source of a provider and wakes the provider when there is something to report, and
// again when it is time to look for moved tags.
func (t *Tracker) ask(ctx context.Context, l *lookup) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()

	from, err := t.sources.Source(l.provider)
	if err != nil {
		t.mu.Lock()
		l.answered = true
		t.mu.Unlock()

		return // the reconcile reports it
	}

	move, moveErr := findMove(ctx, from, l.provider)
	versions, metadata, offerErr := t.sources.List(ctx, l.provider)

	for _, err := range []error{moveErr, offerErr} {
		if err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("Cannot look up the source", "error", err.Error())
		}
	}

	t.mu.Lock()
	l.answered = true

	if moveErr == nil {
		l.checked = true
		l.move = move
	}

	if offerErr == nil {
		l.offer = &offer{versions: versions, metadata: metadata}
	}
	t.mu.Unlock()

	label, namespace := v1alpha2.Label(l.provider), l.provider.GetNamespace()
	if _, tagged := from.(source.TaggedSource); tagged {
		t.wake(label, namespace, maxAge+time.Second)
	}

	if moveErr == nil || offerErr == nil {
		t.wake(label, namespace, 0)
	}
}

// Forget drops what is known of a provider that is gone.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.lookups, uid)
}
