package clusters

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/paging"
)

// Connection describes how to connect to a cluster.
type Connection struct {
	Config     *rest.Config
	HTTPClient *http.Client
	Mapper     meta.RESTMapper
	// Scheme must know CRDs, see crds.AddToScheme.
	Scheme *runtime.Scheme
	// Namespaces are those that are watched; empty for all. Objects in other namespaces are read
	// from the API server.
	Namespaces map[string]cache.Config
	// Remote reports whether this is another cluster than the one with the provider resources.
	Remote bool
}

// Cluster is a connection to a cluster, with what all targets there share. Nothing is watched in a remote cluster.
type Cluster struct {
	// Definitions caches all CRDs, without their schemas. Labels cannot select the CRDs of a
	// provider, because some may have been applied before by something else.
	Definitions cache.Cache
	// Watches are those of ConfigMaps and Secrets, among them Helm's revisions.
	Watches *namespaces.Watches

	clients // of the connection itself

	connection Connection
	kinds      *apply.Kinds
	tracker    *health.Tracker
	own        *Target

	mu sync.Mutex
	// uid is nil until it was asked for.
	uid     *types.UID
	targets map[string]*Target // by account, without own
}

// NewCluster creates the clients of a cluster, and its caches unless it is remote. It sends no requests: call
// Start to run the caches. wake is called for providers whose objects have
// changed.
func NewCluster(connection Connection, wake health.Wake) (*Cluster, error) {
	kinds, err := apply.NewKinds(connection.Config, connection.HTTPClient)
	if err != nil {
		return nil, err
	}

	own, err := connection.clientsOf("", kinds)
	if err != nil {
		return nil, err
	}

	c := &Cluster{clients: own, connection: connection, kinds: kinds, targets: map[string]*Target{}}

	if !connection.Remote {
		if err := c.createCaches(); err != nil {
			return nil, err
		}
	}

	c.tracker = health.NewTracker(health.Options{
		Client:     c.client,
		Remote:     connection.Remote,
		Namespaces: slices.Sorted(maps.Keys(connection.Namespaces)),
		Wake:       wake,
	})

	c.own = c.newTarget("", own)

	return c, nil
}

func (c *Cluster) createCaches() error {
	var err error

	c.Definitions, err = cache.New(c.connection.Config, cache.Options{
		Scheme:           c.connection.Scheme,
		Mapper:           c.connection.Mapper,
		HTTPClient:       c.connection.HTTPClient,
		DefaultTransform: crds.StripSchemas,
		// All CRDs of a large cluster have more than a response may have.
		NewInformer: func(
			from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(
				paging.ListWatcher(from, crds.StripSchemas), object, resync, indexers)
		},
	})

	c.Watches = namespaces.New(c.metadata, slices.Sorted(maps.Keys(c.connection.Namespaces)))

	return err
}

// Start runs the caches until ctx ends.
func (c *Cluster) Start(ctx context.Context) error {
	defer c.tracker.Stop()

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Definitions.Start(ctx) })
	group.Go(func() error { return c.Watches.Start(ctx) })

	return group.Wait()
}

// definitions reads CRDs from the cache, or from the API server of a remote cluster.
func (c *Cluster) definitions() client.Reader {
	if c.connection.Remote {
		return c.client
	}

	return c.Definitions
}

// OwnTarget returns the target that impersonates no account.
func (c *Cluster) OwnTarget() *Target { return c.own }

// Reader returns a reader with the permissions of an account. It is not cached.
func (c *Cluster) Reader(account string) (client.Reader, error) {
	target, err := c.target(account)
	if err != nil {
		return nil, err
	}

	return target.Client, nil
}

// target returns the target for an account, always the same for the same account. An empty account
// is that of the connection.
func (c *Cluster) target(account string) (*Target, error) {
	if account == "" {
		return c.own, nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if known := c.targets[account]; known != nil {
		return known, nil
	}

	impersonated, err := c.connection.clientsOf(account, c.kinds)
	if err != nil {
		return nil, fmt.Errorf("impersonate %s: %w", account, err)
	}

	created := c.newTarget(account, impersonated)
	c.targets[account] = created

	return created, nil
}

// keepTargets drops the targets for accounts that no resource uses any more.
func (c *Cluster) keepTargets(isUsed func(account string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	maps.DeleteFunc(c.targets, func(account string, _ *Target) bool { return !isUsed(account) })
}

// forget drops what is known of the objects of a resource, and stops watching the kinds that only it has.
// Targets of accounts are dropped as a whole.
func (c *Cluster) forget(user resource) {
	c.tracker.Forget(user.label, user.namespace)
	c.own.CRDs.Forget(user.label)
	c.own.Releases.Forget(user.release())
}
