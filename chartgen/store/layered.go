package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// pushAgain is how long a chart that could not be pushed waits for the next attempt.
const pushAgain = time.Minute

// Layered keeps charts in a registry, and those in use in the cluster as well: a registry that does not answer disturbs nothing
// that is installed, and an upgrade to a chart that is in the cluster works meanwhile. What is in the cluster is used without asking
// the registry.
type Layered struct {
	Cluster  Store
	Registry *Registry
	// ReadOnly charts are looked up in the registry and never pushed to it.
	ReadOnly bool

	mu       sync.Mutex
	unpushed map[Key]struct{}
}

var _ Store = &Layered{}

// Get reads a chart from the cluster, else from the registry; then the cluster keeps it. A registry that fails is logged and counts
// as one that does not have the chart.
func (s *Layered) Get(ctx context.Context, key Key) (*Stored, error) {
	found, err := s.Cluster.Get(ctx, key)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	remote, remoteErr := s.Registry.Get(ctx, key)
	if remoteErr != nil {
		if !errors.Is(remoteErr, ErrNotFound) {
			logr.FromContextOrDiscard(ctx).Error(remoteErr, "the chart repository is of no help, so the chart is made anew", "provider", key.Provider, "version", key.Version)
		}
		return nil, err
	}
	return s.Cluster.Put(ctx, key, remote.Chart)
}

// Find reads a chart of a version from the cluster.
func (s *Layered) Find(ctx context.Context, query Query) (*Stored, error) {
	return s.Cluster.Find(ctx, query)
}

// Put keeps a chart in the cluster and pushes it, unless its content may not be shared: a chart that was not made by chartgen. A
// failure to push is logged, and made good by Start.
func (s *Layered) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	stored, err := s.Cluster.Put(ctx, key, c)
	if err != nil || s.ReadOnly || key.Foreign() {
		return stored, err
	}
	s.push(ctx, key, c)
	return stored, nil
}

// Prune forgets charts in the cluster.
func (s *Layered) Prune(ctx context.Context, namespace, provider string, keep []string, before time.Time) error {
	return s.Cluster.Prune(ctx, namespace, provider, keep, before)
}

// Delete forgets the charts in the cluster. Those in the registry are not one resource's own.
func (s *Layered) Delete(ctx context.Context, namespace, provider string) error {
	s.mu.Lock()
	for key := range s.unpushed {
		if key.Namespace == namespace && key.Provider == provider {
			delete(s.unpushed, key)
		}
	}
	s.mu.Unlock()
	return s.Cluster.Delete(ctx, namespace, provider)
}

// Start pushes what could not be pushed before, every minute until the context ends; it is a controller manager's Runnable.
func (s *Layered) Start(ctx context.Context) error {
	ticker := time.NewTicker(pushAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.PushAgain(ctx)
		}
	}
}

// PushAgain tries to push what could not be pushed before, and says how many charts are left.
func (s *Layered) PushAgain(ctx context.Context) int {
	s.mu.Lock()
	keys := make([]Key, 0, len(s.unpushed))
	for key := range s.unpushed {
		keys = append(keys, key)
	}
	s.mu.Unlock()
	for _, key := range keys {
		if stored, err := s.Cluster.Get(ctx, key); err == nil {
			s.push(ctx, key, stored.Chart)
		} else if errors.Is(err, ErrNotFound) {
			s.remember(key, nil) // deleted meanwhile
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unpushed)
}

func (s *Layered) push(ctx context.Context, key Key, c *chart.Chart) {
	_, err := s.Registry.Put(ctx, key, c)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "the chart is in the cluster and could not be pushed to the chart repository", "provider", key.Provider, "version", key.Version)
	}
	s.remember(key, err)
}

// remember notes whether a chart still has to be pushed.
func (s *Layered) remember(key Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unpushed == nil {
		s.unpushed = map[Key]struct{}{}
	}
	delete(s.unpushed, key)
	if err != nil {
		s.unpushed[key] = struct{}{}
	}
}
