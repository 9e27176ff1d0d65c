package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/chartgen/transport"
)

const (
	// connectTimeout limits the request that finds out whether a server answers.
	connectTimeout = 10 * time.Second
	// maxResponse limits a response in bytes.
	maxResponse = 16 << 20
)

// remote is a cluster that a kubeconfig points to. Nothing there is watched: each reconcile reads what it needs.
type remote struct {
	config *rest.Config

	// cluster is nil until the server has answered, and down until it cannot be reached.
	cluster atomic.Pointer[Cluster]
	down    atomic.Pointer[UnreachableError]

	// asking is the request that all wait for who ask at the same time.
	asking singleflight.Group
	// backoff is when the server is asked again after the next failure.
	backoff wait.Backoff
}

// newRemote returns a remote cluster that is not connected yet.
func newRemote(config *rest.Config) *remote {
	return &remote{config: config, backoff: newBackoff()}
}

// reach returns the cluster once it has said which one it is, and connects to it the first time. The error is an
// *UnreachableError, or a *KubeConfigError.
func (r *remote) reach(ctx context.Context, p *Pool) (*Cluster, error) {
	_, err, _ := r.asking.Do("", func() (any, error) {
		if down := r.down.Load(); down != nil {
			again := *down
			again.Until = time.Now().Add(connectTimeout)
			r.down.Store(&again)
		}

		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()

		cluster, err := r.ask(ctx, p)
		if err != nil {
			return nil, r.failed(err)
		}

		r.cluster.Store(cluster)
		r.down.Store(nil)
		r.backoff = newBackoff()

		return nil, nil
	})

	return r.cluster.Load(), err
}

// answered reports whether the server has answered, and did so last.
func (r *remote) answered() bool { return r.cluster.Load() != nil && r.down.Load() == nil }

// awaited returns why the server cannot be reached if it is not asked again yet, or is being asked again.
func (r *remote) awaited() *UnreachableError {
	down := r.down.Load()
	if down == nil || !time.Now().Before(down.Until) {
		return nil
	}

	return down
}

// failed notes that the server could not be asked, and returns why.
func (r *remote) failed(err error) error {
	if refused := (*KubeConfigError)(nil); errors.As(err, &refused) {
		return refused
	}

	if refused := (*transport.Error)(nil); errors.As(err, &refused) {
		return &KubeConfigError{"spec.kubeConfig: " + refused.Error()}
	}

	reason := reasonOf(err)

	switch {
	case errors.Is(err, context.DeadlineExceeded):
		reason = "no response within " + connectTimeout.String()
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		reason = "its responses are not those of an API server" // they would be quoted
	}

	down := &UnreachableError{Address: r.config.Host, Reason: reason, Until: time.Now().Add(r.backoff.Step())}
	r.down.Store(down)

	return down
}

// ask asks the server which cluster it is. One that is another than before has new clients, which know nothing yet.
func (r *remote) ask(ctx context.Context, p *Pool) (*Cluster, error) {
	if before := r.cluster.Load(); before != nil {
		uid, err := before.readUID(ctx)
		if err != nil || uid == before.UID() {
			return before, err
		}
	}

	cluster, err := p.connect(r.config)
	if err != nil {
		return nil, err
	}

	return cluster, cluster.identify(ctx)
}

// connect creates the clients of a remote cluster. It sends no request.
func (p *Pool) connect(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.Dial = p.Addresses.Dial
	config.Wrap(limitResponses)

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
	}, func(string, string, time.Duration) {}) // reconciles are requeued anyway
}

// limitResponses returns a transport whose responses have no more than maxResponse.
func limitResponses(next http.RoundTripper) http.RoundTripper { return limited{next} }

type limited struct{ http.RoundTripper }

// RoundTrip sends a request.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	response.Body = &limitedBody{ReadCloser: response.Body, left: maxResponse}

	return response, nil
}

// limitedBody is the body of a response, with the number of bytes that may still be read.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read reads from the body.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)

	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the API server of spec.kubeConfig sends more than %d MiB in a response", maxResponse>>20)
	}

	return n, err
}
