package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// identify finds out the UID of the cluster, once.
func (c *Cluster) identify(ctx context.Context) error {
	if c.knownUID() != nil {
		return nil
	}

	uid, err := c.readUID(ctx)
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.uid = &uid

	return nil
}

// knownUID returns the UID of the cluster; nil until it was asked for.
func (c *Cluster) knownUID() *types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.uid
}

// readUID asks for the UID of the cluster: that of its namespace kube-system, which exists in every cluster and is
// never recreated. The user of a kubeconfig may not be permitted to read it; the UID is then empty.
func (c *Cluster) readUID(ctx context.Context) (types.UID, error) {
	namespaces := c.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))

	namespace, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})

	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case apierrors.IsUnauthorized(err):
		return "", errors.New("it rejects the credentials (401 Unauthorized)")
	case err != nil:
		return "", fmt.Errorf("identify the cluster: %w", err)
	}

	return namespace.GetUID(), nil
}

// UID returns the UID of the cluster; empty if it is unknown.
func (c *Cluster) UID() types.UID {
	return ptr.Deref(c.knownUID(), "")
}

// ClusterUID returns the UID of the target's cluster; empty if it is unknown.
func (t *Target) ClusterUID() types.UID {
	if t.cluster == nil {
		return ""
	}

	return t.cluster.UID()
}

// Owner returns how a resource is recorded as the owner of its release in the target cluster.
func (p *Pool) Owner(provider v1alpha2.Provider, target *Target) state.Owner {
	return state.Owner{Resource: provider.GetUID(), Home: p.Local.UID(), Cluster: target.ClusterUID()}
}

// Identity returns an identifier of the cluster that a provider is installed into: equal identifiers mean the same
// cluster. It sends no request. A server can claim to be any cluster, so what it says counts only among the kubeconfigs
// of one namespace. Of a cluster that was not connected since the operator was started, and whose UID is in no status,
// or must not be read, only the way to it is known.
func (p *Pool) Identity(provider v1alpha2.Provider) string {
	if provider.GetSpec().KubeConfig == nil {
		return cmp.Or(string(p.Local.UID()), v1alpha2.Cluster(provider))
	}

	uid := string(p.remoteUID(provider))
	if release := provider.GetStatus().Release; uid == "" && release != nil {
		uid = release.ClusterUID
	}

	if uid == "" {
		return v1alpha2.Cluster(provider)
	}

	return provider.GetNamespace() + "/" + uid
}

// remoteUID returns the UID of the remote cluster that a provider was last installed into; empty if it is unknown.
func (p *Pool) remoteUID(provider v1alpha2.Provider) types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()

	cluster := p.clusters()[p.uses[resourceOf(provider)].key]
	if cluster == nil || cluster == p.Local {
		return ""
	}

	return cluster.UID()
}
