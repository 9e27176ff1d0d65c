package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// pushInterval is the time between attempts to push pending charts.
const pushInterval = time.Minute

// Layered stores charts in a registry, and those in use in the cluster as well. An unreachable
// registry therefore does not affect installed providers, nor upgrades to charts that are in the
// cluster: charts in the cluster are used without asking the registry.
type Layered struct {
	// Cluster is the store in the cluster.
	Cluster Store
	// Registry is the store in the registry.
	Registry *Registry
	// ReadOnly means that charts are read from the registry and never pushed to it.
	ReadOnly bool
	// OnPending, if not nil, is called with the number of charts that have yet to be pushed whenever
	// it may have changed. It must not call the store.
	OnPending func(charts int)

	queue     pushQueue
	reporting sync.Mutex // held while OnPending is called, so that the last call has the last number
}

var _ Store = &Layered{}

// Get reads a chart from the cluster, or else from the registry and stores it in the cluster. A
// registry that fails is logged and treated as one that does not have the chart.
func (s *Layered) Get(ctx context.Context, key Key) (*Stored, error) {
	found, err := s.Cluster.Get(ctx, key)
	if err == nil {
		s.queueUnknown(key.chartID(found), found)
		return found, nil
	}

	if !errors.Is(err, ErrNotFound) {
		return nil, err
	}

	remote, remoteErr := s.Registry.Get(ctx, key)
	if remoteErr != nil {
		if !errors.Is(remoteErr, ErrNotFound) {
			logr.FromContextOrDiscard(ctx).Error(
				remoteErr,
				"The chart repository cannot be read, so the chart is generated again",
				"provider", key.Provider, "version", key.Version,
			)
		}

		return nil, err
	}

	stored, err := s.Cluster.Put(ctx, key, remote.Chart)
	if err != nil {
		return nil, err
	}

	s.queue.markPushed(key.chartID(stored))
	s.reportPending()

	return stored, nil
}

// Find reads a chart of a version from the cluster.
func (s *Layered) Find(ctx context.Context, options FindOptions) (*Stored, error) {
	found, err := s.Cluster.Find(ctx, options)
	if err != nil {
		return nil, err
	}

	key := Key{Namespace: options.Namespace, Provider: options.Provider, Version: options.Version}
	s.queueUnknown(key.chartID(found), found)

	return found, nil
}

// Put stores a chart in the cluster and pushes it to the registry. Prebuilt charts are not pushed,
// since they may not be shared. If the push fails, the error is logged and returned in PushErr, and
// Start pushes the chart later.
func (s *Layered) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	stored, err := s.Cluster.Put(ctx, key, c)
	if err != nil || s.ReadOnly || key.IsPrebuilt() {
		return stored, err
	}

	stored.PushErr = s.push(ctx, key.chartID(stored), c)

	if stored.PushErr == nil && len(s.queue.pending()) > 0 {
		s.queue.wake() // the registry works again
	}

	return stored, nil
}

// Prune deletes charts in the cluster.
func (s *Layered) Prune(ctx context.Context, namespace, provider string, keep []string, before time.Time) error {
	return s.Cluster.Prune(ctx, namespace, provider, keep, before)
}

// Delete deletes the charts in the cluster. Charts in the registry stay, since other namespaces and
// clusters may use them.
func (s *Layered) Delete(ctx context.Context, namespace, provider string) error {
	s.queue.remove(func(id chartID) bool { return id.namespace == namespace && id.provider == provider })
	s.reportPending()

	return s.Cluster.Delete(ctx, namespace, provider)
}

// Start pushes pending charts until the context ends: when one is added, and then every minute. It
// implements the Runnable interface of controller managers.
func (s *Layered) Start(ctx context.Context) error {
	ticker := time.NewTicker(pushInterval)
	defer ticker.Stop()

	wakeup := s.queue.wakeup()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-wakeup:
		}

		s.PushPending(ctx)
	}
}

// PushPending tries to push all pending charts and returns how many are left. It stops when the
// registry does not answer.
func (s *Layered) PushPending(ctx context.Context) int {
	for _, id := range s.queue.pending() {
		err := s.pushStored(ctx, id)
		if oci.IsReason(err, oci.Unavailable) {
			break
		}
	}

	return s.reportPending()
}

// pushStored pushes a chart of the cluster, or forgets it if it was deleted.
func (s *Layered) pushStored(ctx context.Context, id chartID) error {
	stored, err := s.Cluster.Find(ctx, FindOptions{
		Namespace:    id.namespace,
		Provider:     id.provider,
		Version:      id.version,
		PreferDigest: id.digest,
	})
	if errors.Is(err, ErrNotFound) || err == nil && stored.Digest != id.digest {
		s.queue.remove(func(other chartID) bool { return other == id })
		return nil
	}

	if err != nil {
		return err
	}

	return s.push(ctx, id, stored.Chart)
}

// push pushes a chart to the registry and records the result. Errors are also logged.
func (s *Layered) push(ctx context.Context, id chartID, c *chart.Chart) error {
	key := Key{
		Namespace: id.namespace,
		Provider:  id.provider,
		Version:   id.version,
		ContentID: c.Metadata.Annotations[chartgen.AnnotationContentID],
	}

	_, err := s.Registry.Put(ctx, key, c)
	if err != nil {
		s.queue.markPending(id)
		logr.FromContextOrDiscard(ctx).Error(
			err,
			"The chart is stored in the cluster but could not be pushed to the chart repository",
			"provider", id.provider, "version", id.version,
		)
	} else {
		s.queue.markPushed(id)
	}

	s.reportPending()

	return err
}

// queueUnknown queues a chart to be pushed unless this process knows whether the registry has it.
// That is how charts are found that an earlier process could not push.
func (s *Layered) queueUnknown(id chartID, stored *Stored) {
	if s.ReadOnly || stored.Prebuilt || s.queue.contains(id) {
		return
	}

	s.queue.markPending(id)
	s.reportPending()
	s.queue.wake()
}

// reportPending calls OnPending and returns the number of pending charts.
func (s *Layered) reportPending() int {
	s.reporting.Lock()
	defer s.reporting.Unlock()

	count := len(s.queue.pending())
	if s.OnPending != nil {
		s.OnPending(count)
	}

	return count
}

// chartID returns the identity of the chart that is stored for a key.
func (k Key) chartID(stored *Stored) chartID {
	return chartID{namespace: k.Namespace, provider: k.Provider, version: k.Version, digest: stored.Digest}
}
