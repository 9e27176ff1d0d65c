package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
)

// Registry finds the target of a provider resource. Connections to remote clusters are made when
// they are needed, shared, and closed when the last resource that needs one is gone or points
// elsewhere.
type Registry struct {
	// Local is the cluster that the provider resources are in.
	Local *Cluster
	// Secrets reads kubeconfigs.
	Secrets client.Reader
	// DefaultAccount is the ServiceAccount to use, in the resource's namespace, when the resource
	// names none; empty for the operator's own rights.
	DefaultAccount string
	// Watch is told of each remote cluster before it starts.
	Watch func(context.Context, *Cluster) error
	// Options of remote clusters, see Connection.
	Scheme     *runtime.Scheme
	Namespaces map[string]cache.Config
	Holder     string
	Wake       health.Wake

	mu      sync.Mutex
	remotes map[string]*remote
	targets map[targetKey]*Target
	used    map[types.UID]string // by resource: the key of its remote
}

// remote is a cluster that a kubeconfig leads to.
type remote struct {
	*Cluster
	stop context.CancelFunc
}

type targetKey struct{ remote, account string }

// KubeConfigError says that spec.kubeConfig leads nowhere.
type KubeConfigError struct{ message string }

func (e *KubeConfigError) Error() string { return e.message }

// For is the target of a resource. Its error is a *KubeConfigError, or says why the Secret could
// not be read or a client not be made.
func (r *Registry) For(ctx context.Context, p v1alpha2.Provider) (*Target, error) {
	key, config, err := r.kubeConfig(ctx, p)
	if err != nil {
		return nil, err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	cluster := r.Local
	if config != nil {
		if cluster, err = r.connect(ctx, key, config); err != nil {
			return nil, &KubeConfigError{fmt.Sprintf("spec.kubeConfig: the cluster cannot be connected to: %s", err)}
		}
	}

	r.use(p.GetUID(), key)

	user := r.account(p)
	if user == "" {
		return cluster.Own(), nil
	}

	if known := r.targets[targetKey{key, user}]; known != nil {
		return known, nil
	}

	t, err := cluster.as(user)
	if err != nil {
		return nil, err
	}

	t.Remote = config != nil

	if r.targets == nil {
		r.targets = map[targetKey]*Target{}
	}

	r.targets[targetKey{key, user}] = t

	return t, nil
}

// Release says that a resource is gone.
func (r *Registry) Release(p v1alpha2.Provider) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.use(p.GetUID(), "")
}

// account is the user whose rights a resource is installed with.
func (r *Registry) account(p v1alpha2.Provider) string {
	name := p.GetSpec().ServiceAccountName
	if name == "" {
		name = r.DefaultAccount
	}

	if name == "" {
		return ""
	}

	return "system:serviceaccount:" + p.GetNamespace() + ":" + name
}

// kubeConfig reads the kubeconfig of a resource. The key stands for what it says; both are empty
// without one.
func (r *Registry) kubeConfig(ctx context.Context, p v1alpha2.Provider) (string, *rest.Config, error) {
	spec := p.GetSpec().KubeConfig
	if spec == nil {
		return "", nil, nil
	}

	name := types.NamespacedName{Namespace: p.GetNamespace(), Name: spec.SecretRef.Name}

	secret := &corev1.Secret{}
	if err := r.Secrets.Get(ctx, name, secret); apierrors.IsNotFound(err) {
		return "", nil, &KubeConfigError{
			fmt.Sprintf("Secret %s of spec.kubeConfig does not exist; create it%s", name, orLetGo(p)),
		}
	} else if err != nil {
		return "", nil, fmt.Errorf("read Secret %s: %w", name, err)
	}

	data, exists := secret.Data[spec.SecretRef.Key]
	if !exists {
		return "", nil, &KubeConfigError{
			fmt.Sprintf("Secret %s of spec.kubeConfig has no key %s; add it%s", name, spec.SecretRef.Key, orLetGo(p)),
		}
	}

	config, err := fluxclient.KubeConfigFromBytes(data)
	if err != nil { // its text may quote the kubeconfig
		return "", nil, &KubeConfigError{
			fmt.Sprintf(
				"key %s of Secret %s is no kubeconfig that can be used here: it needs a server and its credentials in the file itself, without programs and paths",
				spec.SecretRef.Key,
				name,
			),
		}
	}

	sum := sha256.Sum256(data)

	return name.String() + "/" + hex.EncodeToString(sum[:]), config, nil
}

// orLetGo says how a resource goes whose cluster is gone.
func orLetGo(p v1alpha2.Provider) string {
	if p.GetDeletionTimestamp().IsZero() {
		return ""
	}

	return fmt.Sprintf(", or, if that cluster is gone, remove the finalizer %s from this resource", v1alpha2.Finalizer)
}

// connect gives the cluster of a kubeconfig. r.mu is held.
func (r *Registry) connect(ctx context.Context, key string, config *rest.Config) (*Cluster, error) {
	if known := r.remotes[key]; known != nil {
		return known.Cluster, nil
	}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}

	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}

	cluster, err := NewCluster(
		Connection{Config: config, HTTP: httpClient, Mapper: mapper, Scheme: r.Scheme, Namespaces: r.Namespaces},
		r.Holder,
		r.Wake,
	)
	if err != nil {
		return nil, err
	}

	cluster.own.Remote = true

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	if err := r.Watch(running, cluster); err != nil {
		stop()
		return nil, err
	}
	// ends when nobody needs it; what it cannot reach it tries again by itself
	go func() { _ = cluster.Start(running) }()

	if r.remotes == nil {
		r.remotes = map[string]*remote{}
	}

	r.remotes[key] = &remote{cluster, stop}

	return cluster, nil
}

// use notes which remote cluster a resource needs, and closes connections that nobody needs any
// more. r.mu is held.
func (r *Registry) use(uid types.UID, key string) {
	if r.used == nil {
		r.used = map[types.UID]string{}
	}

	before := r.used[uid]
	if before == key {
		return
	}

	if r.used[uid] = key; key == "" {
		delete(r.used, uid)
	}

	for _, other := range r.used {
		if other == before {
			return
		}
	}

	if closed := r.remotes[before]; closed != nil {
		closed.stop()
		delete(r.remotes, before)

		for k := range r.targets {
			if k.remote == before {
				delete(r.targets, k)
			}
		}
	}
}
