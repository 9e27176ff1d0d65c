package clusters

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/controllers/retry"
)

// remote is a cluster that a kubeconfig points to.
type remote struct {
	// running ends when stop is called.
	running context.Context
	stop    context.CancelFunc
	// wake wakes the resources that use the cluster.
	wake func()

	mu      sync.Mutex
	reach   *reachability // nil until the first attempt
	cluster *Cluster      // nil until connected
	attempt *attempt      // nil unless an attempt to connect is running
}

// attempt is an attempt to connect to a cluster.
type attempt struct {
	done    chan struct{} // closed when the attempt has ended
	cluster *Cluster
	err     error
	// abandoned means that a caller did not wait for the end.
	abandoned bool
}

// newRemote returns a remote cluster that is not connected yet. The connection outlives the reconcile
// that makes it.
func newRemote(wake func()) *remote {
	running, stop := context.WithCancel(context.Background())

	return &remote{running: running, stop: stop, wake: wake}
}

// connected returns the cluster; nil if it is not connected.
func (r *remote) connected() *Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.cluster
}

// connect returns the cluster, and connects to it the first time. If that fails, the next call tries
// again. While the cluster is known to be unreachable, it returns an *UnreachableError at once.
func (r *remote) connect(
	ctx context.Context, connect func(running context.Context) (*Cluster, error),
) (*Cluster, error) {
	r.mu.Lock()

	if r.reach != nil {
		if err := r.reach.refusal(); err != nil {
			r.mu.Unlock()
			return nil, err
		}
	}

	if r.cluster != nil {
		defer r.mu.Unlock()
		return r.cluster, nil
	}

	if r.attempt == nil {
		r.attempt = &attempt{done: make(chan struct{})}

		go r.try(r.attempt, connect)
	}

	attempt := r.attempt
	r.mu.Unlock()

	select {
	case <-attempt.done:
		return attempt.cluster, attempt.err
	case <-ctx.Done():
		return nil, r.abandon(attempt)
	}
}

// try makes an attempt to connect.
func (r *remote) try(attempt *attempt, connect func(running context.Context) (*Cluster, error)) {
	cluster, err := connect(r.running)

	r.mu.Lock()
	attempt.cluster, attempt.err = cluster, err
	r.cluster, r.attempt = cluster, nil
	abandoned := attempt.abandoned
	r.mu.Unlock()

	close(attempt.done)

	if abandoned {
		r.wake()
	}
}

// abandon notes that a caller no longer waits for an attempt, and returns its error.
func (r *remote) abandon(attempt *attempt) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	attempt.abandoned = true
	address := ""

	if r.reach != nil {
		address = r.reach.address
	}

	return &UnreachableError{Address: address, Reason: "no response yet"}
}

// guard returns the guard of the requests to the cluster.
func (r *remote) guard(address string, limits Limits) *guard {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.reach == nil {
		r.reach = &reachability{address: address, limits: limits, changed: r.wake, running: r.running}
	}

	return &guard{
		limits: limits, reach: r.reach, running: r.running, sizes: &sizes{}, decoded: &decoded{},
	}
}

// connect connects to a remote cluster and starts its caches, which run until ctx ends.
func (p *Pool) connect(ctx context.Context, remote *remote, config *rest.Config) (*Cluster, error) {
	guard := remote.guard(config.Host, p.Limits.withDefaults())

	config = rest.CopyConfig(config)
	config.Wrap(guard.wrap)
	config.Wrap(retry.Wrap)
	config = sanitize(config, p.KubeConfig)
	// A connection ends with the lease of the leader, or when the cluster is no longer used.
	config.Dial = dialUntil(ctx, p.Local.connection.Config.Dial)

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}

	guard.reach.setProbe(newProbe(httpClient, config.Host))

	cluster, err := p.open(ctx, config, httpClient)
	if err == nil {
		go guard.reach.watch()
	}

	if refused := (*UnreachableError)(nil); errors.As(err, &refused) {
		return nil, refused
	}

	if request := (*url.Error)(nil); errors.As(err, &request) {
		return nil, &UnreachableError{Address: config.Host, Reason: reasonOf(err), Retry: true}
	}

	return cluster, err
}

// open finds out which kinds a cluster serves, and starts its caches.
func (p *Pool) open(ctx context.Context, config *rest.Config, httpClient *http.Client) (*Cluster, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
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

	if err := cluster.identify(ctx); err != nil {
		return nil, err
	}

	if err := p.Watch(ctx, cluster); err != nil {
		return nil, err
	}

	// The caches retry lists and watches that fail.
	go func() { _ = cluster.Start(ctx) }()

	return cluster, nil
}

// dial connects to a server.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// dialUntil returns a function that dials connections which are closed when running ends, and none after that:
// each client of a cluster has connections of its own, and would keep them for a while. next may be nil.
func dialUntil(running context.Context, next dial) dial {
	if next == nil {
		const timeout = 30 * time.Second // the same as that of client-go, as is the other

		next = (&net.Dialer{Timeout: timeout, KeepAlive: timeout}).DialContext
	}

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := running.Err(); err != nil {
			return nil, err
		}

		opened, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}

		// This also closes a connection that was dialed while running ended.
		unlink := context.AfterFunc(running, func() { _ = opened.Close() })

		return &endingConn{Conn: opened, unlink: unlink}, nil
	}
}

// endingConn is a connection that is closed when something ends. unlink makes it stay open then.
type endingConn struct {
	net.Conn
	unlink func() bool
}

// Close closes the connection.
func (c *endingConn) Close() error {
	c.unlink()

	return c.Conn.Close()
}
