package clusters

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/problem"
)

// connectTimeout limits the request that finds out whether a server answers.
const connectTimeout = 10 * time.Second

// remote is a cluster that a kubeconfig points to. Nothing there is watched: each reconcile reads what it needs.
type remote struct {
	// namespace is that of the Secret with the kubeconfig.
	namespace string
	config    *rest.Config

	mu sync.Mutex
	// found is nil until the server has answered, and down until it cannot be reached.
	found *Cluster
	down  *problem.Error

	// asking is the request that all wait for who ask at the same time.
	asking singleflight.Group
	// backoff is when the server is asked again after the next failure. Only who asks uses it.
	backoff wait.Backoff
}

// newRemote returns a remote cluster that is not connected yet.
func newRemote(namespace string, config *rest.Config) *remote {
	return &remote{namespace: namespace, config: config, backoff: newBackoff()}
}

// reach returns the cluster once it has said which one it is, and connects to it the first time. The error is a
// *problem.Error.
func (r *remote) reach(ctx context.Context, p *Pool) (*Cluster, error) {
	_, err, _ := r.asking.Do("", func() (any, error) {
		if cluster, down := r.last(); down != nil {
			again := *down
			again.Until = time.Now().Add(connectTimeout)
			r.note(cluster, &again)
		}

		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()

		cluster, err := r.ask(ctx, p)
		if err != nil {
			return nil, r.failed(err)
		}

		r.note(cluster, nil)
		r.backoff = newBackoff()

		return nil, nil
	})

	return r.cluster(), err
}

// last returns the cluster as it has answered last, and why it could not be reached since.
func (r *remote) last() (*Cluster, *problem.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.found, r.down
}

// note notes what last returns.
func (r *remote) note(cluster *Cluster, down *problem.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.found, r.down = cluster, down
}

// cluster returns the cluster once it has answered; nil before.
func (r *remote) cluster() *Cluster {
	cluster, _ := r.last()
	return cluster
}

// answered reports whether the server has answered, and did so last.
func (r *remote) answered() bool {
	cluster, down := r.last()
	return cluster != nil && down == nil
}

// awaited returns why the server cannot be reached if it is not asked again yet, or is being asked again.
func (r *remote) awaited() *problem.Error {
	_, down := r.last()
	if down == nil || !time.Now().Before(down.Until) {
		return nil
	}

	return down
}

// failed notes that the server could not be asked, and returns why.
func (r *remote) failed(err error) error {
	if problem.Is(err, v1alpha2.KubeConfigErrorReason) {
		return problem.Of(err)
	}

	if refused := (*transport.Error)(nil); errors.As(err, &refused) {
		return refuse("spec.kubeConfig: %v", refused)
	}

	reason := reasonOf(err)

	switch response := (*responseError)(nil); {
	case errors.As(err, &response):
		reason = response.Error()
	case errors.Is(err, transport.ErrEcho):
		reason = transport.ErrEcho.Error()
	case errors.Is(err, context.DeadlineExceeded):
		reason = "no response within " + connectTimeout.String()
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		reason = "its responses are not those of an API server" // they would be quoted
	}

	down := Unreachable(r.address(), reason, time.Now().Add(r.backoff.Step()))
	r.note(r.cluster(), down)

	return down
}

// address returns the server's address without its path, which may be a credential.
func (r *remote) address() string {
	server, _, err := rest.DefaultServerUrlFor(r.config)
	if err != nil {
		return "" // it is not connected to
	}

	return transport.Origin(server)
}

// ask asks the server which cluster it is. One that is another than before has new clients, which know nothing yet.
func (r *remote) ask(ctx context.Context, p *Pool) (*Cluster, error) {
	if before := r.cluster(); before != nil {
		uid, err := before.readUID(ctx)
		if err != nil || uid == before.UID() {
			return before, err
		}
	}

	cluster, err := p.connect(r)
	if err != nil {
		return nil, err
	}

	return cluster, cluster.identify(ctx)
}

// connect creates the clients of a remote cluster. It sends no request.
func (p *Pool) connect(r *remote) (*Cluster, error) {
	config, err := p.guarded(r)
	if err != nil {
		return nil, refuse("spec.kubeConfig: %v", err)
	}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, refuse("spec.kubeConfig: %v", err)
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
	}, func(string, string, time.Duration) {}) // reconciles are requeued anyway
}
