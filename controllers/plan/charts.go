package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/problem"
)

const (
	// maxContents is how many charts are in memory, and maxContentSize how many bytes the files of each have. A chart
	// usually has 1.5 MiB. If each reconcile read its chart from the store, an installation of five providers would take
	// a third more requests and CPU time.
	maxContents    = 32
	maxContentSize = 4 << 20
)

// Charts finds the charts of providers: in memory, in the store, or by building them from their source. Finding a chart
// writes nothing; Save stores one that was fetched.
type Charts struct {
	store     *store.Store
	providers client.Reader
	metrics   *metrics.Recorder

	mu         sync.Mutex
	ofProvider map[providerID]chartsOfProvider
	// contents are those of charts that were used last: digest -> *content.
	contents *lru.Cache

	// building has an element while a chart is built: that takes much memory.
	building chan struct{}
	// storing is locked while a chart is stored, and while those that nothing uses are deleted.
	storing sync.Mutex
}

// NewCharts returns the charts in a store. providers lists all resources that use it.
func NewCharts(store *store.Store, providers client.Reader, recorder *metrics.Recorder) *Charts {
	return &Charts{
		store: store, providers: providers, metrics: recorder, contents: lru.New(maxContents),
		building: make(chan struct{}, 1), ofProvider: map[providerID]chartsOfProvider{},
	}
}

// chartsOfProvider is what is remembered of the charts of one provider.
type chartsOfProvider struct {
	// found is the chart that was found last; without a digest if none was.
	found foundChart
	// saved is the digest of the chart that was stored last.
	saved string
	// patched are the CRDs of a chart as the resource patches them.
	patched patchedCRDs
}

// of returns what is remembered of the charts of a provider.
func (c *Charts) of(provider v1alpha2.Provider) chartsOfProvider {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.ofProvider[idOf(provider)]
}

// note changes what is remembered of the charts of a provider.
func (c *Charts) note(provider v1alpha2.Provider, change func(*chartsOfProvider)) {
	c.mu.Lock()
	defer c.mu.Unlock()

	id := idOf(provider)
	remembered := c.ofProvider[id]
	change(&remembered)
	c.ofProvider[id] = remembered
}

// providerID identifies a provider's resource.
type providerID struct {
	client.ObjectKey
	label string
}

func idOf(provider v1alpha2.Provider) providerID {
	return providerID{client.ObjectKeyFromObject(provider), v1alpha2.Label(provider)}
}

// originOf returns where a version comes from and what is required of it; empty if the content there may change.
func originOf(version source.Version) string {
	if version.Origin.Place == "" {
		return ""
	}

	return version.Origin.String()
}

// foundChart is a chart that was found for a provider: its digest, and the rest as in Chart.
type foundChart struct {
	digest, fetched string
	from            source.Version
	unsaved         bool
}

// StoreFailed returns the problem of charts that cannot be read from or written to the store, which may pass.
func StoreFailed(err error) error {
	return &problem.Error{
		Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.ChartStoreErrorReason,
		Outcome: problem.Retrying, Cause: err,
		Message: fmt.Sprintf("%v; check the quota of the operator's namespace, and its permissions for ConfigMaps", err),
	}
}

// Find returns the chart of a version. Nothing is read when the same content was found before, and
// nothing is fetched from where a version cannot change when its chart is in the store, unless
// refresh asks for that.
func (c *Charts) Find(
	ctx context.Context, provider v1alpha2.Provider, from *source.Source, version source.Version, refresh bool,
) (*Chart, error) {
	if !refresh {
		if found, err := c.recall(ctx, provider, version); found != nil || err != nil {
			return found, err
		}
	}

	found, err := c.load(ctx, provider, from, version, refresh)
	if err != nil {
		c.note(provider, func(p *chartsOfProvider) { p.found = foundChart{} }) // it may have become untrusted

		return nil, err
	}

	found.from = version
	c.remember(provider, found)
	c.metrics.SetChartSize(provider, found.Size)

	return found, nil
}

// last returns the chart that was found last for a provider, and whether it was of the same content as a version.
func (c *Charts) last(provider v1alpha2.Provider, version source.Version) (last foundChart, same bool) {
	last = c.of(provider).found

	return last, version.Fingerprint != "" && last.from == version
}

// recall returns the chart of the provider when it was found last, if that was of the same content; nil otherwise.
func (c *Charts) recall(ctx context.Context, provider v1alpha2.Provider, wanted source.Version) (*Chart, error) {
	last, same := c.last(provider, wanted)
	if !same {
		return nil, nil
	}

	found, err := c.content(ctx, last.digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	return &Chart{content: found, fetched: last.fetched, from: wanted, unsaved: last.unsaved}, nil
}

// Metadata returns the metadata of a version, if the chart of the provider that was found last has been built from its
// components; nil otherwise.
func (c *Charts) Metadata(provider v1alpha2.Provider, version source.Version) []byte {
	last, same := c.last(provider, version)
	if !same {
		return nil
	}

	cached, ok := c.contents.Get(last.digest)
	if !ok {
		return nil
	}

	return chartgen.PublishedMetadata(cached.(*content).Chart)
}

// remember keeps the chart that was found for a provider.
func (c *Charts) remember(provider v1alpha2.Provider, found *Chart) {
	c.note(provider, func(p *chartsOfProvider) {
		p.found = foundChart{found.Digest, found.fetched, found.from, found.unsaved}
	})
}

// load reads the chart from the store, or fetches it from its source. While the source is out of
// reach, a stored chart is used even where a refreshed one is asked for.
func (c *Charts) load(
	ctx context.Context, provider v1alpha2.Provider, from *source.Source, wanted source.Version, refresh bool,
) (*Chart, error) {
	origin := originOf(wanted)
	if origin == "" {
		return c.fetch(ctx, from, wanted)
	}

	kept, err := c.stored(ctx, provider, wanted.Name, origin)
	if err != nil {
		return nil, err
	}

	if kept != nil && !refresh {
		return &Chart{content: kept}, nil
	}

	fetched, err := c.fetch(ctx, from, wanted)
	if kept != nil && source.IsUnavailable(err) {
		return &Chart{content: kept, Outdated: err}, nil
	}

	return fetched, err
}

// stored returns the stored chart of a version that the resource has fetched from an origin before; nil if there is
// none.
func (c *Charts) stored(
	ctx context.Context, provider v1alpha2.Provider, version, origin string,
) (*content, error) {
	return c.find(ctx, provider, version, func(s *store.Stored) bool { return s.IsFrom(provider.GetNamespace(), origin) })
}

// find returns the stored chart of a version that the status names and that is usable; nil if there is none.
func (c *Charts) find(
	ctx context.Context, provider v1alpha2.Provider, version string, usable func(*store.Stored) bool,
) (*content, error) {
	for _, digest := range chartsOf(provider.GetStatus(), version) {
		stored, err := c.store.Get(ctx, digest)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}

		if err != nil {
			return nil, StoreFailed(err)
		}

		if usable(stored) {
			return c.share(stored)
		}
	}

	return nil, nil
}

// chartsOf returns the digests of the charts of a version that a status names, which are the chart in use and those in
// the release's history; those of all versions if none is given.
func chartsOf(status *v1alpha2.ProviderStatus, version string) []string {
	var digests []string

	if chart := status.Chart; chart != nil && (version == "" || chart.Version == strings.TrimPrefix(version, "v")) {
		digests = append(digests, chart.Digest)
	}

	for _, revision := range status.History {
		if version == "" || revision.Version == version {
			digests = append(digests, revision.ChartDigest)
		}
	}

	return slices.Compact(digests)
}

// content returns the content of the chart with a digest, from memory or from the store; store.ErrNotFound if it is in
// neither.
func (c *Charts) content(ctx context.Context, digest string) (*content, error) {
	if cached, ok := c.contents.Get(digest); ok {
		return cached.(*content), nil
	}

	stored, err := c.store.Get(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, err
	}

	if err != nil {
		return nil, StoreFailed(err)
	}

	return c.share(stored)
}

// share returns the content of a chart, which is that in memory if the same chart is there already: a provider that is
// installed into a hundred clusters is in memory once.
func (c *Charts) share(stored *store.Stored) (*content, error) {
	if cached, ok := c.contents.Get(stored.Digest); ok {
		return cached.(*content), nil
	}

	read, err := newContent(stored, c.store.Reference(stored.Digest))
	if err == nil && read.size() <= maxContentSize {
		c.contents.Add(stored.Digest, read)
	}

	return read, err
}

// Installed returns the chart with a digest, of a version that was installed before; store.ErrNotFound when
// it is no longer stored. The digest may come from Helm's records, which prove nothing, so the status must name it as
// well.
func (c *Charts) Installed(ctx context.Context, provider v1alpha2.Provider, digest string) (*chart.Chart, error) {
	if digest != c.of(provider).found.digest && !slices.Contains(chartsOf(provider.GetStatus(), ""), digest) {
		return nil, fmt.Errorf("chart %s of %s: %w", digest, v1alpha2.Label(provider), store.ErrNotFound)
	}

	found, err := c.content(ctx, digest)
	if err != nil {
		return nil, err
	}

	return found.Chart, nil
}
