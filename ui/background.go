package ui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

const (
	// keepTime is how long a result is shown, and repeatTime is when one that is an error is computed again. A change of
	// the resource does not make that faster than changeTime.
	keepTime   = 5 * time.Minute
	repeatTime = time.Minute
	changeTime = 10 * time.Second
	// maxKept is how many results are remembered, and maxComputed how many are computed at the same time.
	maxKept     = 16
	maxComputed = 2
	// computeTimeout limits the time of each.
	computeTimeout = 2 * time.Minute
)

// errBusy reports that something cannot be computed now.
var errBusy = errors.New("too many others are being computed; try again in a minute")

// Background computes what takes too long for a page: in the background, once for all viewers, and remembers the
// results. It is safe for concurrent use.
type Background[T any] struct {
	ctx   context.Context //nolint:containedctx // it ends what runs in the background
	read  func(ctx context.Context, p v1alpha2.Provider) (T, error)
	state func(p v1alpha2.Provider) string
	feed  *Feed
	free  *semaphore.Weighted

	mu    sync.Mutex
	known map[string]*result[T]
}

// result is what is known of a provider with a version.
type result[T any] struct {
	value T

	state    string // of the provider that it was computed for
	computed time.Time
	running  bool
	err      error
}

// Previews are what upgrades would change: of a provider with the version of the upgrade.
type Previews = Background[page.Changes]

// ReadPreview compares the release of a provider with what its resource would install. The provider is a copy with the
// version of the preview.
type ReadPreview func(ctx context.Context, p v1alpha2.Provider) (facts.Comparison, error)

// NewPreviews returns previews that are computed until the context ends. The feed reports each one.
func NewPreviews(ctx context.Context, read ReadPreview, feed *Feed) *Previews {
	changes := func(ctx context.Context, p v1alpha2.Provider) (page.Changes, error) {
		comparison, err := read(ctx, p)
		return page.NewChanges(comparison), err // as large as the provider makes it; what a page shows of it is bounded
	}
	// What it depends on, as far as it is in the resource.
	state := func(p v1alpha2.Provider) string {
		revision := int64(0)
		if r := p.GetStatus().Release; r != nil {
			revision = r.Revision
		}

		return fmt.Sprint(p.GetUID(), p.GetGeneration(), revision)
	}

	return newBackground(ctx, changes, state, feed)
}

// Explanations are what the operator decides about providers.
type Explanations = Background[page.Explanation]

// ReadExplanation finds out what the operator decides about a provider.
type ReadExplanation func(ctx context.Context, p v1alpha2.Provider) (page.Explanation, error)

// NewExplanations returns explanations that are computed until the context ends. The feed reports each one.
func NewExplanations(ctx context.Context, read ReadExplanation, feed *Feed) *Explanations {
	state := func(p v1alpha2.Provider) string { return fmt.Sprint(p.GetUID(), p.GetResourceVersion()) }

	return newBackground(ctx, read, state, feed)
}

func newBackground[T any](
	ctx context.Context, read func(context.Context, v1alpha2.Provider) (T, error),
	state func(v1alpha2.Provider) string, feed *Feed,
) *Background[T] {
	return &Background[T]{
		ctx: ctx, read: read, state: state, feed: feed, free: semaphore.NewWeighted(maxComputed),
		known: map[string]*result[T]{},
	}
}

// of returns the result for a provider with the version of its spec, as far as it is known, and has it computed unless
// that was done a moment ago. An empty time means that it has not been computed yet.
func (o *Background[T]) of(p v1alpha2.Provider) (value T, computed time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	id := page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())
	key := id + " " + p.GetSpec().Version
	state := o.state(p)

	known := o.known[key]
	if known == nil {
		if !o.makeRoom() {
			return value, time.Time{}, errBusy
		}

		known = &result[T]{}
		o.known[key] = known
	}

	if !known.running && known.isOld(state) {
		known.running, known.state = true, state

		go o.compute(id, known, p)
	}

	return known.value, known.computed, known.err
}

// isOld reports whether a result has to be computed for a provider in the state.
func (r *result[T]) isOld(state string) bool {
	age := time.Since(r.computed)

	switch {
	case r.computed.IsZero():
		return true
	case r.state != state:
		return age > changeTime
	case r.err != nil:
		return age > repeatTime
	default:
		return age > keepTime
	}
}

// makeRoom forgets the oldest result if there are too many. It returns false if all of them are being computed.
func (o *Background[T]) makeRoom() bool {
	if len(o.known) < maxKept {
		return true
	}

	oldest := ""

	for key, known := range o.known {
		if !known.running && (oldest == "" || known.computed.Before(o.known[oldest].computed)) {
			oldest = key
		}
	}

	delete(o.known, oldest)

	return oldest != ""
}

// compute computes a result.
func (o *Background[T]) compute(id string, known *result[T], p v1alpha2.Provider) {
	if o.free.Acquire(o.ctx, 1) != nil {
		return
	}
	defer o.free.Release(1)

	ctx, cancel := context.WithTimeout(o.ctx, computeTimeout)
	defer cancel()

	value, err := o.read(ctx, p)

	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("this took longer than %s: %w", computeTimeout, err)
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	known.value = value
	known.computed = time.Now()
	known.running, known.err = false, err

	o.feed.Changed(id)
}
