package ui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui/page"
)

// How long results are shown.
const (
	// keepTime is that of what upgrades would change.
	keepTime = 5 * time.Minute
	// offerTime is that of the answer of a source.
	offerTime = time.Hour
	// currentTime is that of what exists of a provider's objects on its page, and listTime on that of the dependencies,
	// which has all providers.
	currentTime = 30 * time.Second
	listTime    = 10 * time.Minute
)

const (
	// repeatTime is when a result that is an error is computed again at the latest. A change of the resource does not
	// make that faster than changeTime.
	repeatTime = time.Minute
	changeTime = 10 * time.Second
	// unusedTime is when what no page shows any more is forgotten.
	unusedTime = time.Hour
	// reportInterval is the least time between two reports to the pages while there are many.
	reportInterval = 5 * time.Second
)

// errBusy reports that something cannot be computed now.
var errBusy = errors.New("too many others are being computed; try again in a minute")

// Background computes what takes too long for a page: in the background, once for all viewers, whom it does not know,
// and remembers the results. It is safe for concurrent use, and nil knows nothing.
type Background[T any] struct {
	backgroundOptions[T]

	ctx  context.Context //nolint:containedctx // it ends what runs in the background
	feed *Feed
	free *semaphore.Weighted

	mu      sync.Mutex
	known   map[string]*result[T]
	running int
	// changed are the providers for which the pages have to show something else, and reported is when they were last
	// notified of that.
	changed  map[string]bool
	reported time.Time
}

type backgroundOptions[T any] struct {
	read func(ctx context.Context, p v1alpha2.Provider) (T, error)
	// state is what a result depends on, as far as it is in the resource.
	state func(p v1alpha2.Provider) string
	// maxKept is how many results are remembered, and maxComputed how many are computed at the same time.
	maxKept     int
	maxComputed int64
	// timeout limits the time of each.
	timeout time.Duration
}

// result is what is known of a provider with a version.
type result[T any] struct {
	value T // the last one that was no error

	state           string    // of the provider that it was computed for
	computed, tried time.Time // the value, and the value or an error
	shown           time.Time
	running         bool
	err             error // since the value was computed
}

// Offers are the versions that the sources of providers have, newest first.
type Offers = Background[[]upgradeplan.Version]

// ReadVersions reads the versions that the source of a provider has, newest first.
type ReadVersions func(ctx context.Context, p v1alpha2.Provider) ([]upgradeplan.Version, error)

// NewOffers returns offers that are read until the context ends. The feed reports what has changed.
func NewOffers(ctx context.Context, read ReadVersions, feed *Feed) *Offers {
	return newBackground(ctx, feed, backgroundOptions[[]upgradeplan.Version]{
		read: read, state: specState, maxKept: math.MaxInt, maxComputed: 4, timeout: time.Minute,
	})
}

// Usages are the objects of providers' kinds that exist.
type Usages = Background[facts.Usage]

// ReadUsage finds the objects that keep a provider from being removed.
type ReadUsage func(ctx context.Context, p v1alpha2.Provider) (facts.Usage, error)

// NewUsages returns usages that are read until the context ends. The feed reports what has changed.
func NewUsages(ctx context.Context, read ReadUsage, feed *Feed) *Usages {
	return newBackground(ctx, feed, backgroundOptions[facts.Usage]{
		read: read, state: specState, maxKept: math.MaxInt, maxComputed: 4, timeout: time.Minute,
	})
}

// Previews are what upgrades would change: of a provider with the version of the upgrade.
type Previews = Background[page.Changes]

// ReadPreview compares the release of a provider with what its resource would install. The provider is a copy with the
// version of the preview.
type ReadPreview func(ctx context.Context, p v1alpha2.Provider) (facts.Comparison, error)

// NewPreviews returns previews that are computed until the context ends. The feed reports what has changed.
func NewPreviews(ctx context.Context, read ReadPreview, feed *Feed) *Previews {
	changes := func(ctx context.Context, p v1alpha2.Provider) (page.Changes, error) {
		comparison, err := read(ctx, p)
		return page.NewChanges(comparison), err // as large as the provider makes it; what a page shows of it is bounded
	}

	return newBackground(ctx, feed, backgroundOptions[page.Changes]{
		read: changes, state: specState, maxKept: 16, maxComputed: 2, timeout: 2 * time.Minute,
	})
}

// specState changes with the spec of a resource and with its release.
func specState(p v1alpha2.Provider) string {
	revision := int64(0)
	if r := p.GetStatus().Release; r != nil {
		revision = r.Revision
	}

	return fmt.Sprint(p.GetUID(), p.GetGeneration(), revision)
}

func newBackground[T any](ctx context.Context, feed *Feed, o backgroundOptions[T]) *Background[T] {
	return &Background[T]{
		backgroundOptions: o, ctx: ctx, feed: feed, free: semaphore.NewWeighted(o.maxComputed),
		known: map[string]*result[T]{}, changed: map[string]bool{},
	}
}

// last returns the result for a provider with the version of its spec, as far as it is known. It computes nothing.
func (b *Background[T]) last(p v1alpha2.Provider) (value T) {
	if b == nil {
		return value
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	if known := b.known[keyOf(p)]; known != nil {
		return known.value
	}

	return value
}

// of returns the result for a provider with the version of its spec, as far as it is known, and has it computed if it
// is older than a time. The time is when it was computed; zero if it has not been yet. An error is why it could not be
// computed since.
func (b *Background[T]) of(p v1alpha2.Provider, most time.Duration) (value T, computed time.Time, err error) {
	if b == nil {
		return value, computed, nil
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	known := b.known[keyOf(p)]
	if known == nil {
		if !b.makeRoom() {
			return value, computed, errBusy
		}

		known = &result[T]{}
		b.known[keyOf(p)] = known
	}

	known.shown = time.Now()

	if state := b.state(p); !known.running && known.isOld(state, most) {
		known.running, known.state = true, state
		b.running++

		go b.compute(known, p)
	}

	return known.value, known.computed, known.err
}

func keyOf(p v1alpha2.Provider) string { return pageID(p) + " " + p.GetSpec().Version }

// pageID returns the page.ID of a provider.
func pageID(p v1alpha2.Provider) string {
	return page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())
}

// problemOf returns the text of an error; empty for none.
func problemOf(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}

// isOld reports whether a result has to be computed for a provider in the state.
func (r *result[T]) isOld(state string, most time.Duration) bool {
	age := time.Since(r.tried)

	switch {
	case r.tried.IsZero():
		return true
	case r.state != state:
		return age > min(most, changeTime)
	case r.err != nil:
		return age > min(most, repeatTime)
	default:
		return age > most
	}
}

// makeRoom forgets what is no longer shown, and the oldest result if there are too many. It returns false if all of
// them are being computed.
func (b *Background[T]) makeRoom() bool {
	oldest := ""

	for key, known := range b.known {
		switch {
		case known.running:
		case time.Since(known.shown) > unusedTime:
			delete(b.known, key)
		case oldest == "" || known.shown.Before(b.known[oldest].shown):
			oldest = key
		}
	}

	if len(b.known) >= b.maxKept {
		delete(b.known, oldest)
	}

	return len(b.known) < b.maxKept
}

// compute computes a result. The last one remains if that fails.
func (b *Background[T]) compute(known *result[T], p v1alpha2.Provider) {
	if b.free.Acquire(b.ctx, 1) != nil {
		return
	}
	defer b.free.Release(1)

	ctx, cancel := context.WithTimeout(b.ctx, b.timeout)
	defer cancel()

	value, err := b.read(ctx, p)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("this took longer than %s: %w", b.timeout, err)
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	before := *known

	known.running, known.tried, known.err = false, time.Now(), err
	if err == nil {
		known.value, known.computed = value, known.tried
	}

	if before.tried.IsZero() || fmt.Sprint(before.err) != fmt.Sprint(err) ||
		!reflect.DeepEqual(before.value, known.value) {
		b.changed[pageID(p)] = true
	}

	b.running--
	b.report()
}

// report notifies the pages of what has changed: at once after the last result, and from time to time while there are
// many.
func (b *Background[T]) report() {
	if b.running > 0 && time.Since(b.reported) < reportInterval {
		return
	}

	b.reported = time.Now()

	for id := range b.changed {
		b.feed.Changed(id)
	}

	clear(b.changed)
}
