package clusters

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/seats"
)

// Pool finds the targets of provider resources. It connects to a remote cluster when the first
// resource needs it, shares the connection, and drops it when the last resource that needs it is
// forgotten or has another target.
type Pool struct {
	// Local is the cluster that the provider resources are in.
	Local *Cluster
	// Readers read the Secrets with kubeconfigs, and determine the accounts of resources.
	Readers *access.Readers
	// Addresses restricts where remote clusters may be.
	Addresses *transport.Guard
	// Scheme and Namespaces are passed to remote clusters, see Connection and NewCluster.
	Scheme     *runtime.Scheme
	Namespaces map[string]cache.Config
	// Seats bound how many workers wait for clusters that the resources of each kind name; none for no bound.
	Seats map[v1alpha2.ProviderType]*seats.Seats

	room room

	mu      sync.Mutex
	remotes map[string]*remote // by kubeConfig.key
	uses    map[resource]use
}

// resource identifies a provider resource by its label and namespace, which are known even when it no
// longer exists.
type resource struct{ label, namespace string }

func resourceOf(provider v1alpha2.Provider) resource {
	return resource{label: v1alpha2.Label(provider), namespace: provider.GetNamespace()}
}

// release returns the key of the resource's release.
func (r resource) release() types.NamespacedName {
	t, name := v1alpha2.ParseLabel(r.label)
	provider := t.New()
	provider.SetName(name)

	return types.NamespacedName{Namespace: r.namespace, Name: v1alpha2.ReleaseName(provider)}
}

// use is what a resource uses.
type use struct {
	// key is that of the remote cluster; empty for the local one.
	key string
	// account that is impersonated there; empty for none.
	account string
}

// For returns the target of a resource. The error is a *problem.Error if spec.kubeConfig is at
// fault, or if the cluster does not answer; any other error is one of reading
// the Secret or of impersonating the ServiceAccount.
func (p *Pool) For(ctx context.Context, provider v1alpha2.Provider) (*Target, error) {
	account := p.Readers.User(provider)

	if err := p.Local.identify(ctx); err != nil {
		return nil, err
	}

	config, err := p.readKubeConfig(ctx, provider)
	if err != nil {
		p.use(resourceOf(provider), use{account: account}, nil)
		return nil, err
	}

	if config == nil {
		p.use(resourceOf(provider), use{account: account}, nil)
		return p.Local.target(account)
	}

	remote := p.use(resourceOf(provider), use{key: config.key, account: account}, config.rest)

	cluster, err := p.reach(ctx, provider, remote)
	if problem.Is(err, v1alpha2.ClusterUnreachableReason) {
		hinted := *problem.Of(err)
		hinted.Message += deletionHint(provider)

		return nil, &hinted
	}

	if err != nil {
		return nil, err
	}

	return cluster.target(account)
}

// reach returns the cluster of a resource once it has answered. One that answered last is not waited for in a seat.
func (p *Pool) reach(ctx context.Context, provider v1alpha2.Provider, of *remote) (*Cluster, error) {
	if down := of.awaited(); down != nil {
		return nil, down
	}

	if !of.answered() {
		done, err := p.Seats[provider.ProviderType()].Take(provider.GetNamespace())
		if err != nil {
			return nil, err
		}
		defer done()
	}

	return of.reach(ctx, p)
}

// Forget releases what a deleted resource has used.
func (p *Pool) Forget(provider v1alpha2.Provider) {
	p.mu.Lock()
	defer p.mu.Unlock()

	user := resourceOf(provider)
	before, used := p.uses[user]
	delete(p.uses, user)

	if used {
		p.leave(user, before.key)
	}
}

// use records what a resource uses from now on, and returns the remote cluster of a configuration, connected or not;
// nil for the local one. The pool is not locked while a connection is made, so an unreachable cluster
// delays only the resources that need it.
func (p *Pool) use(user resource, now use, config *rest.Config) *remote {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.uses == nil {
		p.uses = map[resource]use{}
		p.remotes = map[string]*remote{}
	}

	if now.key != "" && p.remotes[now.key] == nil {
		p.remotes[now.key] = newRemote(user.namespace, config)
	}

	before, used := p.uses[user]
	p.uses[user] = now

	switch {
	case used && before.key != now.key:
		p.leave(user, before.key)
	case used && before != now:
		p.clean()
	}

	return p.remotes[now.key]
}

// leave drops what is known of a resource's objects in the cluster that it no longer uses. p.mu must be held.
func (p *Pool) leave(user resource, key string) {
	if cluster := p.clusters()[key]; cluster != nil {
		cluster.forget(user)
	}

	p.clean()
}

// clean drops the connections and the targets that no resource uses any more. p.mu must be held.
func (p *Pool) clean() {
	clusters, targets := map[string]bool{}, map[use]bool{}

	for _, u := range p.uses {
		clusters[u.key], targets[u] = true, true
		targets[use{account: u.account}] = true // it also reads, in the local cluster, what its resources name
	}

	maps.DeleteFunc(p.remotes, func(key string, _ *remote) bool { return !clusters[key] })

	for key, cluster := range p.clusters() {
		cluster.keepTargets(func(account string) bool { return targets[use{key: key, account: account}] })
	}
}

// clusters returns the clusters that are connected, by their keys. p.mu must be held.
func (p *Pool) clusters() map[string]*Cluster {
	found := map[string]*Cluster{"": p.Local}

	for key, remote := range p.remotes {
		if cluster := remote.cluster(); cluster != nil {
			found[key] = cluster
		}
	}

	return found
}
