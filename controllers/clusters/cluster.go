package clusters

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/namespaces"
)

// Connection describes how to connect to a cluster.
type Connection struct {
	Config     *rest.Config
	HTTPClient *http.Client
	Mapper     meta.RESTMapper
	Scheme     *runtime.Scheme
	// Namespaces are those that are watched; empty for all. Objects in other namespaces are read
	// from the API server.
	Namespaces map[string]cache.Config
	// Remote reports whether this is another cluster than the one with the provider resources.
	Remote bool
}

// Cluster is a connection to a cluster, with the caches that all targets there share. A remote cluster has none.
type Cluster struct {
	// Definitions caches all CRDs, without their schemas. Labels cannot select the CRDs of a
	// provider, because some may have been applied before by something else.
	Definitions cache.Cache
	// Watches are those of ConfigMaps and Secrets, among them Helm's revisions.
	Watches *namespaces.Watches

	connection Connection
	holder     string
	apiReader  client.WithWatch
	// definitions reads CRDs without their schemas: from Definitions, or from the API server of a remote cluster.
	definitions client.Reader
	metadata    metadata.Interface
	tracker     *health.Tracker
	own         *Target
	// uid is nil until it was asked for.
	uid atomic.Pointer[types.UID]

	mu      sync.Mutex
	targets map[string]*Target // by account, without own
}

// NewCluster creates the clients of a cluster, and its caches unless it is remote. It sends no requests: call
// Start to run the caches. The holder identifies this process in Helm's revisions. wake is called for providers
// whose objects have changed.
func NewCluster(connection Connection, holder string, wake health.Wake) (*Cluster, error) {
	c := &Cluster{connection: connection, holder: holder, targets: map[string]*Target{}}

	if err := c.createClients(); err != nil {
		return nil, err
	}

	var err error

	if connection.Remote {
		err = c.readDefinitions()
	} else {
		err = c.createCaches()
	}

	if err != nil {
		return nil, err
	}

	c.tracker = health.NewTracker(health.Options{
		Client:     c.apiReader,
		Remote:     connection.Remote,
		Namespaces: slices.Sorted(maps.Keys(connection.Namespaces)),
		Wake:       wake,
	})

	c.own, err = c.newTarget("")

	return c, err
}

// readDefinitions makes CRDs be read from the API server.
func (c *Cluster) readDefinitions() error {
	reader, err := c.connection.definitionsClient(c.connection.Config, c.connection.HTTPClient)
	c.definitions = stripped{reader}

	return err
}

// createClients creates the clients that use the permissions of the connection.
func (c *Cluster) createClients() error {
	apiReader, err := client.NewWithWatch(c.connection.Config, client.Options{
		Scheme:     c.connection.Scheme,
		Mapper:     c.connection.Mapper,
		HTTPClient: c.connection.HTTPClient,
	})
	if err != nil {
		return err
	}

	c.apiReader = apiReader
	c.metadata, err = metadata.NewForConfigAndClient(
		metadata.ConfigFor(c.connection.Config), c.connection.HTTPClient)

	return err
}

func (c *Cluster) createCaches() error {
	definitions := runtime.NewScheme()
	if err := crds.AddToScheme(definitions); err != nil {
		return err
	}

	var err error

	c.Definitions, err = cache.New(c.connection.Config, cache.Options{
		Scheme:           definitions,
		Mapper:           c.connection.Mapper,
		HTTPClient:       c.connection.HTTPClient,
		DefaultTransform: crds.StripSchemas,
		NewInformer:      newInformer(crds.StripSchemas),
	})
	if err != nil {
		return err
	}

	c.definitions = c.Definitions

	c.Watches = namespaces.New(c.metadata, slices.Sorted(maps.Keys(c.connection.Namespaces)))

	return nil
}

// Start runs the caches until ctx ends.
func (c *Cluster) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Definitions.Start(ctx) })
	group.Go(func() error {
		<-ctx.Done()
		c.tracker.Stop()

		return nil
	})
	group.Go(func() error { return c.Watches.Start(ctx) })

	return group.Wait()
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

	created, err := c.newTarget(account)
	if err != nil {
		return nil, err
	}

	c.targets[account] = created

	return created, nil
}

// forgetTarget drops the target for an account that no resource uses any more.
func (c *Cluster) forgetTarget(account string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.targets, account)
}

// forget drops what is known of the objects of a resource, and stops watching the kinds that only it has.
// Targets of accounts are dropped as a whole.
func (c *Cluster) forget(user resource) {
	c.tracker.Forget(user.label, user.namespace)
	c.own.CRDs.Forget(user.label)
	c.own.Releases.Forget(user.release())
}

// stripped reads CRDs without their schemas, as the caches of CRDs have them, from an API server.
type stripped struct{ client.Reader }

// Get reads a CRD.
func (s stripped) Get(
	ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption,
) error {
	if err := s.Reader.Get(ctx, key, into, options...); err != nil {
		return err
	}

	_, err := crds.StripSchemas(into)

	return err
}

// List reads CRDs.
func (s stripped) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := s.Reader.List(ctx, into, options...); err != nil {
		return err
	}

	return meta.EachListItem(into, func(o runtime.Object) error {
		_, err := crds.StripSchemas(o)
		return err
	})
}
