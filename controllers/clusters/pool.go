package clusters

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
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
	// Scheme, Namespaces and Holder are passed to remote clusters, see Connection and NewCluster.
	Scheme     *runtime.Scheme
	Namespaces map[string]cache.Config
	Holder     string

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

// For returns the target of a resource. The error is a *KubeConfigError if spec.kubeConfig is at
// fault, and an *UnreachableError if the cluster does not answer; any other error is one of reading
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

	cluster, err := remote.reach(ctx, p)
	if unreachable := (*UnreachableError)(nil); errors.As(err, &unreachable) {
		return nil, unreachable.withHint(deletionHint(provider))
	}

	if err != nil {
		return nil, err
	}

	return cluster.target(account)
}

// Forget releases what a deleted resource has used.
func (p *Pool) Forget(provider v1alpha2.Provider) {
	key := resourceOf(provider)

	p.mu.Lock()
	before, used := p.uses[key]
	delete(p.uses, key)

	if used {
		p.release(before)
	}
	p.mu.Unlock()

	if used {
		p.forgetObjects(key, before)
	}
}

// use records what a resource uses from now on, and returns the remote cluster of a configuration, connected or not;
// nil for the local one. The pool is not locked while a connection is made, so an unreachable cluster
// delays only the resources that need it.
func (p *Pool) use(user resource, now use, config *rest.Config) *remote {
	p.mu.Lock()

	if p.uses == nil {
		p.uses = map[resource]use{}
		p.remotes = map[string]*remote{}
	}

	before, used := p.uses[user]
	p.uses[user] = now

	if used && before != now {
		p.release(before)
	}

	if now.key != "" && p.remotes[now.key] == nil {
		p.remotes[now.key] = newRemote(config)
	}

	remote := p.remotes[now.key]
	p.mu.Unlock()

	if used && before.key != now.key {
		p.forgetObjects(user, before)
	}

	return remote
}

// release drops the connection and the targets that a resource was the last to use. p.mu must be held.
func (p *Pool) release(before use) {
	var sharesAccount, sharesCluster, sharesTarget bool

	for _, other := range p.uses {
		sharesAccount = sharesAccount || other.account == before.account
		sharesCluster = sharesCluster || other.key == before.key
		sharesTarget = sharesTarget || other == before
	}

	// The account also reads, in the local cluster, what its resources name.
	if !sharesAccount {
		p.Local.forgetTarget(before.account)
	}

	remote := p.remotes[before.key]

	switch {
	case remote == nil:
	case !sharesCluster:
		delete(p.remotes, before.key)
	case !sharesTarget && remote.cluster.Load() != nil:
		remote.cluster.Load().forgetTarget(before.account)
	}
}

// forgetObjects drops what is known of a resource's objects in the cluster that it no longer uses.
func (p *Pool) forgetObjects(user resource, before use) {
	p.mu.Lock()
	remote := p.remotes[before.key]
	p.mu.Unlock()

	cluster := p.Local
	if before.key != "" {
		cluster = nil // it is dropped, unless others use it
	}

	if remote != nil {
		cluster = remote.cluster.Load()
	}

	if cluster != nil {
		cluster.forget(user)
	}
}
