package ui

import (
	"context"
	"sync"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui/page"
)

const (
	// freshTime is how long the answer of a source is used, and retryTime is when one that has failed is asked again.
	freshTime = time.Hour
	retryTime = 5 * time.Minute
	// maxAsked is how many sources are asked at the same time, and askTimeout limits the time of each.
	maxAsked   = 4
	askTimeout = time.Minute
)

// Offers remembers which versions the sources of providers have. It asks them in the background, so that no page waits
// for a source. It is safe for concurrent use.
type Offers struct {
	ctx  context.Context //nolint:containedctx // it ends what runs in the background
	read ReadVersions
	feed *Feed
	free chan struct{}

	mu    sync.Mutex
	known map[string]*offer
}

// ReadVersions reads the versions that the source of a provider has, newest first.
type ReadVersions func(ctx context.Context, p v1alpha2.Provider) ([]upgradeplan.Version, error)

// offer is the answer of a source.
type offer struct {
	page.Offer

	asking bool
	next   time.Time // when it is asked again
}

// NewOffers returns offers that are read until the context ends. The feed reports each answer.
func NewOffers(ctx context.Context, read ReadVersions, feed *Feed) *Offers {
	return &Offers{ctx: ctx, read: read, feed: feed, free: make(chan struct{}, maxAsked), known: map[string]*offer{}}
}

// of returns what is known of the sources of all providers, by page.ID, and has those asked whose answer is old.
// Without offers, nothing is known.
func (o *Offers) of(providers []v1alpha2.Provider) map[string]page.Offer {
	if o == nil {
		return nil
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	kept := make(map[string]*offer, len(providers))
	found := make(map[string]page.Offer, len(providers))

	for _, p := range providers {
		id := page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())

		known := o.known[id]
		if known == nil {
			known = &offer{}
		}

		if !known.asking && !time.Now().Before(known.next) {
			known.asking = true
			go o.ask(id, known, p)
		}

		kept[id] = known
		found[id] = known.Offer
	}

	o.known = kept

	return found
}

// versions returns the versions that the source of a provider has, as far as that is known. It asks nothing.
func (o *Offers) versions(p v1alpha2.Provider) []upgradeplan.Version {
	if o == nil {
		return nil
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	if known := o.known[page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())]; known != nil {
		return known.Versions
	}

	return nil
}

// ask asks the source of a provider. The last answer remains if that fails.
func (o *Offers) ask(id string, known *offer, p v1alpha2.Provider) {
	select {
	case o.free <- struct{}{}:
		defer func() { <-o.free }()
	case <-o.ctx.Done():
		return
	}

	ctx, cancel := context.WithTimeout(o.ctx, askTimeout)
	defer cancel()

	versions, err := o.read(ctx, p)

	o.mu.Lock()
	defer o.mu.Unlock()

	known.asking = false

	if err != nil {
		known.Problem = err.Error()
		known.next = time.Now().Add(retryTime)
	} else {
		known.Offer = page.Offer{Versions: versions, Asked: time.Now()}
		known.next = known.Asked.Add(freshTime)
	}

	o.feed.Changed(id)
}
