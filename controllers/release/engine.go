package release

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Options of an Engine. Zero values mean the defaults.
type Options struct {
	// Holder names this process in the releases that it makes: its leader election identity. It is
	// required.
	Holder string
	// ForeignGrace is how long another program, such as a person's helm upgrade, may go without a
	// sign before it is taken for dead. Default: 5m.
	ForeignGrace time.Duration
	// HookTimeout bounds each hook of a chart. Default: 5m.
	HookTimeout time.Duration
	// RequestTimeout bounds each request to the API server, unless the configuration does. Default:
	// 30s.
	RequestTimeout time.Duration
}

// Engine runs the releases of one cluster. It may be used by many goroutines.
type Engine struct {
	options  Options
	cluster  *cluster
	metadata metadata.Getter // of Secrets
	objects  metadata.Interface
	secrets  corev1.SecretsGetter
	records  *records

	mu   sync.Mutex
	busy map[types.NamespacedName]bool
}

// setFieldOwner sets the field manager of Helm's requests, which is a global of its library.
var setFieldOwner = sync.OnceFunc(func() { kube.ManagedFieldsManager = v1alpha2.FieldOwner })

// NewEngine makes an engine for the cluster that config leads to. It makes no request. Requests are
// not throttled here: the API server does that itself, and more fairly.
func NewEngine(config *rest.Config, options Options) (*Engine, error) {
	if options.Holder == "" {
		return nil, errors.New("release engine: no holder is given: name the process, e.g. by its leader election identity")
	}

	setFieldOwner()
	defaultTo(&options.ForeignGrace, 5*time.Minute)
	defaultTo(&options.HookTimeout, 5*time.Minute)
	defaultTo(&options.RequestTimeout, 30*time.Second)

	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	defaultTo(&config.Timeout, options.RequestTimeout)

	c, err := newCluster(config)
	if err != nil {
		return nil, err
	}

	secrets, err := corev1.NewForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), c.http)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	return &Engine{
		options:  options,
		cluster:  c,
		secrets:  secrets,
		metadata: meta.Resource(secretsResource),
		objects:  meta,
		records:  &records{known: map[types.NamespacedName]reading{}},
		busy:     map[types.NamespacedName]bool{},
	}, nil
}

func defaultTo(value *time.Duration, otherwise time.Duration) {
	if *value == 0 {
		*value = otherwise
	}
}

// Refresh forgets the API server's version, APIs and kinds, for when new CRDs have been applied or
// the cluster was upgraded. Kinds that a manifest needs and that are not known are looked for anew
// in any case.
func (e *Engine) Refresh() { e.cluster.refresh() }

// Digest names all that a revision would be made from: chart, values, post-renderer and version of
// Kubernetes. It is compared with Revision.Digest and holds nothing that could be turned back into
// a value.
func (e *Engine) Digest(d Desired) (string, error) {
	caps, err := e.cluster.caps()
	if err != nil {
		return "", err
	}

	return d.digest(caps.KubeVersion.Major + "." + caps.KubeVersion.Minor)
}

// Decide tells what state an observed release is in.
func (e *Engine) Decide(o Observation, digest string) State {
	return Decide(
		o,
		digest,
		Rules{Holder: v1alpha2.LabelValue(e.options.Holder), ForeignGrace: e.options.ForeignGrace, Now: time.Now()},
	)
}

// Result is what an action did.
type Result struct {
	// Revision and Status are what was written last of the newest revision; zero if nothing was
	// written. They count, not the error: an action that failed may have written, and one that went
	// well may not have been able to.
	Revision int
	Status   Status
	// Adopted objects were there and belonged to no release. Replaced ones were deleted and made
	// anew, because of an immutable field. Pruned ones were deleted. Left ones are no longer in the
	// release, but were kept: because somebody annotated them so, for their kind, or because they
	// no longer carry the release's mark. What the chart itself annotates to be kept is not listed.
	Adopted, Replaced, Pruned, Left []Object
	// Versions are the objects that are now as the release says, whether they had to change or not.
	Versions []Version
}

// Apply makes the release what is desired, by one Helm action that the state calls for: an install
// if it is Absent or Uninstalled, otherwise an upgrade, before which a revision that was Abandoned
// is marked failed. It returns when the objects are applied, ready or not. Once begun it is not
// cancelled by ctx, because Helm would go on behind our back, but each of its requests is bounded.
//
// The error is nil only if the result is in storage. Otherwise it is, or wraps: ErrChanged,
// *PendingError, *RenderError, *UnknownKindError, *ConflictError, which are found before anything
// is done; *RejectedError, *UnavailableError, *RemoveError, which leave a failed revision;
// *StorageError.
func (e *Engine) Apply(ctx context.Context, d Desired, state State) (Result, error) {
	if state.Condition == Pending {
		return Result{}, &PendingError{Message: state.Message, Until: state.Until}
	}

	done, err := e.begin(d.Namespace, d.Name)
	if err != nil {
		return Result{}, err
	}
	defer done()

	s := e.newSession(ctx, d.Namespace, d.Name)
	err = s.apply(ctx, d, state)

	return s.result(), err
}

// Return is the way back to an earlier revision.
type Return struct {
	// Namespace and Name of the release.
	Namespace, Name string
	// Revision to return to.
	Revision int
	// Digest that stands for what is wanted. Default: that of the revision, so that what was
	// desired then is in sync again.
	Digest string
	// Reason why, for the history.
	Reason string
	// HistoryLimit is that of Desired.
	HistoryLimit int
}

// Rollback makes the objects of an earlier revision those of the release again, by a new revision.
// What revisions since then have added is pruned, what they dropped is made anew. It is otherwise
// like Apply; a revision that the history does not have is a *NoRevisionError.
func (e *Engine) Rollback(ctx context.Context, t Return, state State) (Result, error) {
	if state.Condition == Pending {
		return Result{}, &PendingError{Message: state.Message, Until: state.Until}
	}

	done, err := e.begin(t.Namespace, t.Name)
	if err != nil {
		return Result{}, err
	}
	defer done()

	s := e.newSession(ctx, t.Namespace, t.Name)
	err = s.rollback(ctx, t, state)

	return s.result(), err
}

// Uninstall removes the release: its objects, those of failed revisions included, and its history.
// CRDs, Namespaces and what carries the annotation "helm.sh/resource-policy: keep" stay. It may be
// called again at any time, whatever state an earlier attempt or another program has left behind; a
// release that does not exist is fine. A *CorruptError says that no revision can be read: Apply
// makes one that can.
func (e *Engine) Uninstall(ctx context.Context, namespace, name string) (Result, error) {
	done, err := e.begin(namespace, name)
	if err != nil {
		return Result{}, err
	}
	defer done()
	defer e.records.forget(namespace, name)

	s := e.newSession(ctx, namespace, name)
	err = s.uninstall(ctx)

	return s.result(), err
}

// begin makes sure that one action at a time runs on a release.
func (e *Engine) begin(namespace, name string) (done func(), err error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}

	e.mu.Lock()
	defer e.mu.Unlock()

	if e.busy[key] {
		return nil, &PendingError{Message: fmt.Sprintf("an action on release %s is running", key)}
	}

	e.busy[key] = true

	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()

		delete(e.busy, key)
	}, nil
}

func (e *Engine) isBusy(namespace, name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.busy[types.NamespacedName{Namespace: namespace, Name: name}]
}
