package ui

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

const (
	// currentTime is how long it is shown on the page of a provider what exists of its objects, and listTime on that of
	// the dependencies, which has all providers.
	currentTime = 30 * time.Second
	listTime    = 10 * time.Minute
	// maxSearches is how many providers' objects are looked up at the same time, and searchTimeout limits each search.
	maxSearches   = 4
	searchTimeout = time.Minute
	// reportInterval is the least time between two reports to the pages.
	reportInterval = 5 * time.Second
	// unusedTime is when what no page shows any more is forgotten.
	unusedTime = time.Hour
)

// Usages remembers which objects of providers' kinds exist. It looks them up in the background, so that no page waits
// for that, and does not know viewers. It is safe for concurrent use.
type Usages struct {
	ctx  context.Context //nolint:containedctx // it ends what runs in the background
	read ReadUsage
	feed *Feed
	free *semaphore.Weighted

	mu       sync.Mutex
	known    map[string]*use
	searches int
	// changed are the providers for which the pages have to show something else, and reported is when they were last
	// notified of that.
	changed  map[string]bool
	reported time.Time
}

// ReadUsage finds the objects that keep a provider from being removed.
type ReadUsage func(ctx context.Context, p v1alpha2.Provider) (facts.Usage, error)

// use is what is known about a provider.
type use struct {
	page.Use

	searching bool
	searched  time.Time // also if that has failed
	shown     time.Time
}

// NewUsages returns usages that are read until the context ends. The feed reports what has changed.
func NewUsages(ctx context.Context, read ReadUsage, feed *Feed) *Usages {
	return &Usages{
		ctx: ctx, read: read, feed: feed, free: semaphore.NewWeighted(maxSearches),
		known: map[string]*use{}, changed: map[string]bool{},
	}
}

// of returns what is known of providers, by page.ID, and has those looked up of which it is older than a time. Without
// usages, nothing is known.
func (u *Usages) of(providers []v1alpha2.Provider, most time.Duration) map[string]page.Use {
	if u == nil {
		return nil
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	now := time.Now()
	found := make(map[string]page.Use, len(providers))

	for _, p := range providers {
		if p.GetSpec().KubeConfig != nil {
			continue // other clusters are not read
		}

		id := page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())

		known := u.known[id]
		if known == nil {
			known = &use{}
			u.known[id] = known
		}

		known.shown = now

		if !known.searching && now.Sub(known.searched) >= most {
			known.searching = true
			u.searches++

			go u.search(id, known, p)
		}

		found[id] = known.Use
	}

	maps.DeleteFunc(u.known, func(_ string, known *use) bool {
		return !known.searching && now.Sub(known.shown) > unusedTime
	})

	return found
}

// search looks up the objects of a provider. What was found last remains if that fails.
func (u *Usages) search(id string, known *use, p v1alpha2.Provider) {
	if u.free.Acquire(u.ctx, 1) != nil {
		return
	}
	defer u.free.Release(1)

	ctx, cancel := context.WithTimeout(u.ctx, searchTimeout)
	defer cancel()

	found, err := u.read(ctx, p)

	u.mu.Lock()
	defer u.mu.Unlock()

	before := known.Use
	known.searching = false
	known.searched = time.Now()

	if err != nil {
		known.Problem = err.Error()
	} else {
		known.Use = page.Use{Usage: found, Asked: known.searched}
	}

	if before.Asked.IsZero() || before.Problem != known.Problem || !reflect.DeepEqual(before.Usage, known.Usage) {
		u.changed[id] = true
	}

	u.report()
}

// report notifies the pages of what has changed: at once after the last search, and from time to time while there are
// many.
func (u *Usages) report() {
	u.searches--

	if u.searches > 0 && time.Since(u.reported) < reportInterval {
		return
	}

	u.reported = time.Now()

	for id := range u.changed {
		u.feed.Changed(id)
	}

	clear(u.changed)
}
