package clusters

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/controllers/retry"
)

// remote is a cluster that a kubeconfig points to. Nothing there is watched: each reconcile reads what it needs.
type remote struct {
	address string
	// namespace of the kubeconfig.
	namespace string
	// running ends when stop is called.
	running context.Context
	stop    context.CancelFunc
	// turn is held while the server is asked who it is.
	turn *semaphore.Weighted

	mu      sync.Mutex
	cluster *Cluster // nil until the server has answered
	// answered is when the server was last known to answer; zero if that has to be found out.
	answered time.Time
	// down is why the server cannot be reached, and backoff when it is asked again after the next failure.
	down    *UnreachableError
	backoff wait.Backoff
}

// answerAge is how long an answer counts for all who ask.
const answerAge = time.Second

// newRemote returns a remote cluster that is not connected yet. The connection outlives the reconcile
// that makes it.
func newRemote(namespace, address string) *remote {
	running, stop := context.WithCancel(context.Background())

	return &remote{
		address: address, namespace: namespace, running: running, stop: stop,
		turn: semaphore.NewWeighted(1), backoff: newBackoff(),
	}
}

// connected returns the cluster; nil if it is not connected.
func (r *remote) connected() *Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.cluster
}

// known returns the cluster if it has answered just now, or the error if it has not and is not asked again yet. Both
// are nil if it has to be asked.
func (r *remote) known(now time.Time) (*Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	switch {
	case r.down != nil && now.Before(r.down.Until):
		return nil, r.down
	case r.cluster != nil && now.Sub(r.answered) < answerAge:
		return r.cluster, nil
	default:
		return nil, nil
	}
}

// reach returns the cluster once it has said which one it is, and connects to it the first time. All who ask at the
// same time wait for one answer. The error is an *UnreachableError, or a *KubeConfigError.
func (r *remote) reach(ctx context.Context, p *Pool, config *rest.Config, namespace string) (*Cluster, error) {
	if cluster, err := r.known(time.Now()); cluster != nil || err != nil {
		return cluster, err
	}

	if err := r.turn.Acquire(ctx, 1); err != nil {
		return nil, &UnreachableError{Address: r.address, Reason: "no response yet", Until: time.Now().Add(minRetry)}
	}
	defer r.turn.Release(1)

	if cluster, err := r.known(time.Now()); cluster != nil || err != nil {
		return cluster, err
	}

	timeout := p.Limits.withDefaults().ConnectTimeout

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()

	cluster, err := r.ask(ctx, p, config, namespace)

	r.mu.Lock()
	defer r.mu.Unlock()

	if err == nil {
		r.cluster, r.answered, r.down, r.backoff = cluster, time.Now(), nil, newBackoff()
		return cluster, nil
	}

	if refused := (*KubeConfigError)(nil); errors.As(err, &refused) {
		return nil, refused
	}

	r.down = &UnreachableError{
		Address: r.address, Reason: reachReason(err, timeout), Until: time.Now().Add(r.backoff.Step()),
	}

	return nil, r.down
}

// reachReason returns why a server could not be asked.
func reachReason(err error, timeout time.Duration) string {
	unreachable := (*UnreachableError)(nil)

	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no response within " + timeout.String()
	case errors.As(err, &unreachable):
		return unreachable.Reason
	default:
		return reasonOf(err)
	}
}

// ask asks the server which cluster it is. One that is another than before has new clients, which know nothing yet.
func (r *remote) ask(ctx context.Context, p *Pool, config *rest.Config, namespace string) (*Cluster, error) {
	before := r.connected()
	if before != nil {
		uid, err := before.readUID(ctx)
		if err != nil || uid == before.UID() {
			return before, err
		}
	}

	cluster, err := p.connect(r, config, namespace)
	if err != nil {
		return nil, err
	}

	return cluster, cluster.identify(ctx)
}

// forget makes the next reconcile ask whether the server answers.
func (r *remote) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.answered = time.Time{}
}

// connect creates the clients of a remote cluster. It sends no request.
func (p *Pool) connect(r *remote, config *rest.Config, namespace string) (*Cluster, error) {
	guard := &guard{
		address: r.address, limits: p.Limits.withDefaults(), namespace: namespace, memory: p.responseMemory(),
		running: r.running, failed: r.forget,
	}

	config = rest.CopyConfig(config)
	config.Wrap(guard.wrap)
	config.Wrap(retry.Wrap)

	config = sanitize(config, p.KubeConfig)
	config.Dial = dialUntil(r.running, p.Addresses.DialThrough(p.Local.connection.Config.Dial))
	// With HTTP/2, a server can send more than is read.
	config.NextProtos = []string{"http/1.1"}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, &KubeConfigError{"spec.kubeConfig: " + err.Error()}
	}

	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}

	return NewCluster(Connection{
		Config:     config,
		HTTPClient: httpClient,
		Mapper:     mapper,
		Scheme:     p.Scheme,
		Namespaces: p.Namespaces,
		Remote:     true,
	}, p.Holder, func(string, string, time.Duration) {}) // reconciles are requeued anyway
}

// dial connects to a server.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// dialUntil returns a function that dials connections which are closed when running ends, and none after that:
// each client of a cluster has connections of its own, and would keep them for a while.
func dialUntil(running context.Context, next dial) dial {
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
