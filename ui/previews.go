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
	// previewTime is how long a preview is shown, and previewRetry is when one that has failed is computed again. A
	// change of the resource does not make that faster than previewPause.
	previewTime  = 5 * time.Minute
	previewRetry = time.Minute
	previewPause = 10 * time.Second
	// maxPreviews is how many previews are remembered, and maxComputed how many are computed at the same time.
	maxPreviews = 16
	maxComputed = 2
	// computeTimeout limits the time of each.
	computeTimeout = 2 * time.Minute
)

// errTooManyPreviews reports that the preview cannot be computed now.
var errTooManyPreviews = errors.New("too many other previews are being computed; try again in a minute")

// Previews computes what upgrades would change. It does so in the background, because it reads the source of a
// provider, and remembers the results. It is safe for concurrent use.
type Previews struct {
	ctx  context.Context //nolint:containedctx // it ends what runs in the background
	read ReadPreview
	feed *Feed
	free *semaphore.Weighted

	mu    sync.Mutex
	known map[string]*preview
}

// ReadPreview compares the release of a provider with what its resource would install. The provider is a copy with the
// version of the preview.
type ReadPreview func(ctx context.Context, p v1alpha2.Provider) (facts.Comparison, error)

// preview is what is known of an upgrade.
type preview struct {
	page.Changes

	state    string // of the provider that it was computed for
	computed time.Time
	running  bool
	err      error
}

// NewPreviews returns previews that are computed until the context ends. The feed reports each one.
func NewPreviews(ctx context.Context, read ReadPreview, feed *Feed) *Previews {
	return &Previews{
		ctx: ctx, read: read, feed: feed, free: semaphore.NewWeighted(maxComputed), known: map[string]*preview{},
	}
}

// of returns what the upgrade of a provider to a version would change, as far as it is known, and has it computed
// unless that was done a moment ago. An empty time means that it has not been computed yet.
func (o *Previews) of(p v1alpha2.Provider, version string) (page.Changes, time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	id := page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName())
	key := id + " " + version
	state := stateOf(p)

	known := o.known[key]
	if known == nil {
		if !o.makeRoom() {
			return page.Changes{}, time.Time{}, errTooManyPreviews
		}

		known = &preview{}
		o.known[key] = known
	}

	if !known.running && known.isOld(state) {
		known.running, known.state = true, state

		wanted := p.DeepCopyObject().(v1alpha2.Provider)
		wanted.GetSpec().Version = version

		go o.compute(id, known, wanted)
	}

	return known.Changes, known.computed, known.err
}

// stateOf identifies what a preview depends on, as far as it is in the resource.
func stateOf(p v1alpha2.Provider) string {
	revision := int64(0)
	if r := p.GetStatus().Release; r != nil {
		revision = r.Revision
	}

	return fmt.Sprint(p.GetUID(), p.GetGeneration(), revision)
}

// isOld reports whether a preview has to be computed for a provider in the state.
func (p *preview) isOld(state string) bool {
	age := time.Since(p.computed)

	switch {
	case p.computed.IsZero():
		return true
	case p.state != state:
		return age > previewPause
	case p.err != nil:
		return age > previewRetry
	default:
		return age > previewTime
	}
}

// makeRoom forgets the oldest preview if there are too many. It returns false if all of them are being computed.
func (o *Previews) makeRoom() bool {
	if len(o.known) < maxPreviews {
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

// compute computes a preview.
func (o *Previews) compute(id string, known *preview, wanted v1alpha2.Provider) {
	if o.free.Acquire(o.ctx, 1) != nil {
		return
	}
	defer o.free.Release(1)

	ctx, cancel := context.WithTimeout(o.ctx, computeTimeout)
	defer cancel()

	comparison, err := o.read(ctx, wanted)

	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("this took longer than %s: %w", computeTimeout, err)
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	// The comparison can be as large as the provider makes it; what a page shows of it is bounded.
	known.Changes = page.NewChanges(comparison)
	known.computed = time.Now()
	known.running, known.err = false, err

	o.feed.Changed(id)
}
