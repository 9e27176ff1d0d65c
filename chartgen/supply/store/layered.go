package store

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// pushAgain is how long a chart that could not be pushed waits for the next attempt.
const pushInterval = time.Minute

// Layered keeps charts in a registry, and those in use in the cluster as well: a registry that does
// not answer disturbs nothing that is installed, and an upgrade to a chart that is in the cluster
// works meanwhile. What is in the cluster is used without asking the registry.
type Layered struct {
	Cluster  Store
	Registry *Registry
	// ReadOnly charts are looked up in the registry and never pushed to it.
	ReadOnly bool
	// Waiting, if it is not nil, is told how many charts wait to be pushed whenever that may have
	// changed.
	OnPending func(charts int)

	mu     sync.Mutex
	pushed map[chartID]bool // of the charts used since the start: whether the registry has them
	wakeups   chan struct{}    // says that a chart waits which can be pushed now, as far as anybody knows
}

var _ Store = &Layered{}

// chartID names a chart in the cluster.
type chartID struct{ namespace, provider, version, digest string }

func (k Key) chartID(stored *Stored) chartID {
	return chartID{k.Namespace, k.Provider, k.Version, stored.Digest}
}

// Get reads a chart from the cluster, else from the registry; then the cluster keeps it. A registry
// that fails is logged and counts as one that does not have the chart.
func (s *Layered) Get(ctx context.Context, key Key) (*Stored, error) {
	found, err := s.Cluster.Get(ctx, key)
	if err == nil {
		s.queueUnknown(key.chartID(found), found)
	}

	if !errors.Is(err, ErrNotFound) {
		return found, err
	}

	remote, remoteErr := s.Registry.Get(ctx, key)
	if remoteErr != nil {
		if !errors.Is(remoteErr, ErrNotFound) {
			logr.FromContextOrDiscard(ctx).
				Error(remoteErr, "the chart repository is of no help, so the chart is made anew", "provider", key.Provider, "version", key.Version)
		}

		return nil, err
	}

	stored, err := s.Cluster.Put(ctx, key, remote.Chart)
	if err == nil {
		s.note(key.chartID(stored), true)
	}

	return stored, err
}

// Find reads a chart of a version from the cluster.
func (s *Layered) Find(ctx context.Context, query FindOptions) (*Stored, error) {
	found, err := s.Cluster.Find(ctx, query)
	if err == nil {
		s.queueUnknown(chartID{query.Namespace, query.Provider, query.Version, found.Digest}, found)
	}

	return found, err
}

// Put keeps a chart in the cluster and pushes it, unless its content may not be shared: a chart
// that was not made by chartgen. A failure to push is logged and told in Unshared, and made good by
// Start.
func (s *Layered) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	stored, err := s.Cluster.Put(ctx, key, c)
	if err != nil || s.ReadOnly || key.IsPrebuilt() {
		return stored, err
	}

	if stored.PushErr = s.push(ctx, key.chartID(stored), c); stored.PushErr == nil && s.reportPending() > 0 {
		s.wake() // the registry is back
	}

	return stored, nil
}

// Prune forgets charts in the cluster.
func (s *Layered) Prune(ctx context.Context, namespace, provider string, keep []string, before time.Time) error {
	return s.Cluster.Prune(ctx, namespace, provider, keep, before)
}

// Delete forgets the charts in the cluster. Those in the registry are not one resource's own.
func (s *Layered) Delete(ctx context.Context, namespace, provider string) error {
	s.mu.Lock()
	maps.DeleteFunc(
		s.pushed,
		func(id chartID, _ bool) bool { return id.namespace == namespace && id.provider == provider },
	)
	s.mu.Unlock()
	s.reportPending()

	return s.Cluster.Delete(ctx, namespace, provider)
}

// Start pushes what the registry lacks of the charts in use: each is tried once, and then every
// minute until it is there. It is a controller manager's Runnable and works until the context ends.
func (s *Layered) Start(ctx context.Context) error {
	ticker := time.NewTicker(pushInterval)
	defer ticker.Stop()

	s.mu.Lock()
	news := s.wakeChannel()
	s.mu.Unlock()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-news:
		}

		s.PushPending(ctx)
	}
}

// PushAgain tries to push what waits, and says how many charts are left. It gives up when the
// registry does not answer.
func (s *Layered) PushPending(ctx context.Context) int {
	s.mu.Lock()

	var waiting []chartID

	for id, pushed := range s.pushed {
		if !pushed {
			waiting = append(waiting, id)
		}
	}
	s.mu.Unlock()

	for _, id := range waiting {
		stored, err := s.Cluster.Find(
			ctx,
			FindOptions{Namespace: id.namespace, Provider: id.provider, Version: id.version, PreferDigest: id.digest},
		)
		switch {
		case errors.Is(err, ErrNotFound), err == nil && stored.Digest != id.digest: // deleted meanwhile
			s.forget(id)
		case err == nil:
			err = s.push(ctx, id, stored.Chart)
		}

		if oci.IsReason(err, oci.Unavailable) {
			break
		}
	}

	return s.reportPending()
}

// push pushes a chart; its error is logged.
func (s *Layered) push(ctx context.Context, id chartID, c *chart.Chart) error {
	key := Key{
		Namespace: id.namespace,
		Provider:  id.provider,
		Version:   id.version,
		ContentID: c.Metadata.Annotations[chartgen.AnnotationContentID],
	}

	_, err := s.Registry.Put(ctx, key, c)
	if err != nil {
		logr.FromContextOrDiscard(ctx).
			Error(err, "the chart is in the cluster and could not be pushed to the chart repository", "provider", id.provider, "version", id.version)
	}

	s.note(id, err == nil)

	return err
}

// used has a chart pushed that this process does not know to be in the registry: what an earlier
// one could not push is found so.
func (s *Layered) queueUnknown(id chartID, stored *Stored) {
	s.mu.Lock()
	_, known := s.pushed[id]
	s.mu.Unlock()

	if known || s.ReadOnly || stored.Prebuilt {
		return
	}

	s.note(id, false)
	s.wake()
}

// announce has Start push what waits, at once.
func (s *Layered) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()

	select {
	case s.wakeChannel() <- struct{}{}:
	default: // it is announced already
	}
}

// announcements is the channel that news come by. The caller holds the lock.
func (s *Layered) wakeChannel() chan struct{} {
	if s.wakeups == nil {
		s.wakeups = make(chan struct{}, 1)
	}

	return s.wakeups
}

// note notes whether the registry has a chart.
func (s *Layered) note(id chartID, pushed bool) {
	s.mu.Lock()
	if s.pushed == nil {
		s.pushed = map[chartID]bool{}
	}

	s.pushed[id] = pushed
	s.mu.Unlock()
	s.reportPending()
}

func (s *Layered) forget(id chartID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.pushed, id)
}

// waiting counts and tells the charts that wait to be pushed.
func (s *Layered) reportPending() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	count := 0

	for _, pushed := range s.pushed {
		if !pushed {
			count++
		}
	}

	if s.OnPending != nil {
		s.OnPending(count)
	}

	return count
}
