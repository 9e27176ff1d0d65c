package clusters

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/health"
)

// Pool finds the targets of provider resources. It connects to a remote cluster when the first
// resource needs it, shares the connection, and closes it when the last resource that needs it is
// forgotten or has another target.
type Pool struct {
	// Local is the cluster that the provider resources are in.
	Local *Cluster
	// Readers read the Secrets with kubeconfigs, and determine the accounts of resources.
	Readers *access.Readers
	// Watch is called with each remote cluster before its caches start.
	Watch func(context.Context, *Cluster) error
	// Scheme, Namespaces, Holder and Wake are passed to remote clusters, see Connection and
	// NewCluster.
	Scheme     *runtime.Scheme
	Namespaces map[string]cache.Config
	Holder     string
	Wake       health.Wake

	mu      sync.Mutex
	remotes map[string]*remote   // by kubeConfig.key
	used    map[types.UID]string // the key of the remote that a resource uses
}

// For returns the target of a resource. The error is a *KubeConfigError if spec.kubeConfig is at
// fault; any other error is one of reading the Secret or of impersonating the ServiceAccount.
func (p *Pool) For(ctx context.Context, provider v1alpha2.Provider) (*Target, error) {
	reader, err := p.Readers.For(provider)
	if err != nil {
		return nil, err
	}

	config, err := readKubeConfig(ctx, reader, provider)
	if err != nil {
		return nil, err
	}

	cluster, err := p.cluster(ctx, provider.GetUID(), config)
	if err != nil {
		return nil, &KubeConfigError{fmt.Sprintf("spec.kubeConfig: cannot connect to the cluster: %s", err)}
	}

	return cluster.target(p.Readers.User(provider))
}

// Forget releases what a deleted resource has used.
func (p *Pool) Forget(provider v1alpha2.Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.use(provider.GetUID(), "")
}

// cluster returns the cluster of a kubeconfig, which may be nil for the local cluster, and records
// that the resource uses it. The pool is not locked while a connection is made, so an unreachable
// cluster delays only the resources that need it.
func (p *Pool) cluster(ctx context.Context, resource types.UID, config *kubeConfig) (*Cluster, error) {
	if config == nil {
		p.mu.Lock()
		defer p.mu.Unlock()

		p.use(resource, "")

		return p.Local, nil
	}

	return p.remote(ctx, resource, config.key).connect(func(running context.Context) (*Cluster, error) {
		return p.connect(running, config.rest)
	})
}

// remote returns the remote cluster with the key, connected or not, and records that the resource
// uses it.
func (p *Pool) remote(ctx context.Context, resource types.UID, key string) *remote {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.use(resource, key)

	if p.remotes[key] == nil {
		if p.remotes == nil {
			p.remotes = map[string]*remote{}
		}

		// The connection outlives the reconcile that makes it.
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		p.remotes[key] = &remote{running: running, stop: stop}
	}

	return p.remotes[key]
}

// use records the key of the remote cluster that a resource uses, empty for none, and closes the
// connection that the resource was the last to use. p.mu must be held.
func (p *Pool) use(resource types.UID, key string) {
	before := p.used[resource]
	if before == key {
		return
	}

	if p.used == nil {
		p.used = map[types.UID]string{}
	}

	p.used[resource] = key
	if key == "" {
		delete(p.used, resource)
	}

	for _, other := range p.used {
		if other == before {
			return
		}
	}

	if unused := p.remotes[before]; unused != nil {
		unused.stop()
		delete(p.remotes, before)
	}
}

// connect connects to a remote cluster and starts its caches, which run until ctx ends.
func (p *Pool) connect(ctx context.Context, config *rest.Config) (*Cluster, error) {
	httpClient, mapper, err := discover(config)
	if err != nil {
		return nil, err
	}

	cluster, err := NewCluster(Connection{
		Config:     config,
		HTTPClient: httpClient,
		Mapper:     mapper,
		Scheme:     p.Scheme,
		Namespaces: p.Namespaces,
		Remote:     true,
	}, p.Holder, p.Wake)
	if err != nil {
		return nil, err
	}

	if err := p.Watch(ctx, cluster); err != nil {
		return nil, err
	}

	// The caches retry lists and watches that fail.
	go func() { _ = cluster.Start(ctx) }()

	return cluster, nil
}

// discover returns an HTTP client for a cluster, and a mapper of the kinds that it serves.
func discover(config *rest.Config) (*http.Client, meta.RESTMapper, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}

	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)

	return httpClient, mapper, err
}

// remote is a cluster that a kubeconfig points to.
type remote struct {
	// running ends when stop is called.
	running context.Context
	stop    context.CancelFunc

	mu      sync.Mutex
	cluster *Cluster // nil until connected
}

// connect returns the cluster, and connects to it the first time. If that fails, the next call
// tries again.
func (r *remote) connect(connect func(running context.Context) (*Cluster, error)) (*Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.cluster != nil {
		return r.cluster, nil
	}

	cluster, err := connect(r.running)
	if err != nil {
		return nil, err
	}

	r.cluster = cluster

	return cluster, nil
}
