package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// pushInterval is the time between attempts to push pending charts.
const pushInterval = time.Minute

// Layered stores charts in the cluster, and also pushes those to a registry that were generated from
// the operator's catalog. What is in the cluster is never pushed: a user who can write ConfigMaps could
// share any chart that way. Pending charts are therefore kept in memory, and lost with the process.
type Layered struct {
	// Store is the one in the cluster.
	Store
	// Registry is what charts are pushed to.
	Registry *Registry
	// OnPending, if not nil, is called with the number of charts that have yet to be pushed whenever
	// it may have changed. It must not call the store.
	OnPending func(charts int)

	queue     pushQueue
	reporting sync.Mutex // held while OnPending is called, so that the last call has the last number
}

var _ Store = &Layered{}

// Put stores a chart in the cluster. A chart from the catalog is also pushed to the registry. If that
// fails, the error is logged and returned in PushErr, and Start pushes the chart later.
func (s *Layered) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	stored, err := s.Store.Put(ctx, key, c)
	if err != nil || !key.FromCatalog || key.IsPrebuilt() {
		return stored, err
	}

	waiting := s.queue.len() > 0
	stored.PushErr = s.push(ctx, chartID{provider: key.Provider, version: key.Version, digest: stored.Digest}, c)

	if stored.PushErr == nil && waiting {
		s.queue.wake() // the registry works again
	}

	return stored, nil
}

// Start pushes pending charts until the context ends: every minute, and when the registry works again.
// It implements the Runnable interface of controller managers.
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
	for id, c := range s.queue.pending() {
		if err := s.push(ctx, id, c); oci.IsReason(err, oci.Unavailable) {
			break
		}
	}

	return s.queue.len()
}

// push pushes a chart to the registry and records the result. Errors are also logged.
func (s *Layered) push(ctx context.Context, id chartID, c *chart.Chart) error {
	defer s.reportPending()

	_, err := s.Registry.Push(ctx, id.version, c)
	if err == nil {
		s.queue.remove(id)

		return nil
	}

	switch {
	case oci.IsReason(err, oci.Conflict): // and so it would be every time
		s.queue.remove(id)
	case s.queue.add(id, c):
		err = fmt.Errorf("%w; the push is retried", err)
	default:
		err = fmt.Errorf("%w; too many charts are waiting, so it is pushed when it is built again", err)
	}

	logr.FromContextOrDiscard(ctx).Error(
		err,
		"The chart is stored in the cluster but could not be pushed to the chart repository",
		"provider", id.provider, "version", id.version,
	)

	return err
}

// reportPending calls OnPending.
func (s *Layered) reportPending() {
	s.reporting.Lock()
	defer s.reporting.Unlock()

	if s.OnPending != nil {
		s.OnPending(s.queue.len())
	}
}
