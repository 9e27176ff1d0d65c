package clusters

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// proofTimeout is how long a proof may take, and proofInterval how soon one that failed is repeated.
	proofTimeout  = 10 * time.Second
	proofInterval = 10 * time.Minute
	// proofNamespace is where remote clusters get the object that proves which one they are: it always exists.
	proofNamespace = metav1.NamespaceDefault
)

// identity returns an identifier of the cluster: of what its server claims, together with the namespace of the
// kubeconfig, unless the server has proved that it is one of others. p.mu must not be held.
func (r *remote) identity(uid string) string {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.proved != "" {
		return r.proved
	}

	return claimedIdentity(r.namespace, uid)
}

// claimedIdentity returns the identifier of a remote cluster of which only its server, or a status, tells the UID.
func claimedIdentity(namespace, uid string) string { return namespace + "/" + uid }

// prove finds out whether the server of a remote cluster that claims to be another cluster is that one: the operator's
// own, or one of other kubeconfigs. Then an object with a random name that is written through one of the connections is
// read through the other.
func (p *Pool) prove(ctx context.Context, r *remote, cluster *Cluster) {
	if cluster.UID() == "" || !r.startProof(cluster) {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()

	proved := ""
	if cluster.UID() == p.Local.UID() && p.Namespace != "" && sees(ctx, p.Local, p.Namespace, cluster) == cluster {
		proved = string(p.Local.UID())
	}

	if others := p.claimingSame(r, cluster); proved == "" && len(others) > 0 {
		readers := make([]*Cluster, 0, len(others))
		for _, other := range others {
			readers = append(readers, other.connected())
		}

		found := sees(ctx, cluster, proofNamespace, readers...)
		for i, reader := range readers {
			if found != nil && reader == found {
				proved = others[i].identity(string(cluster.UID()))
			}
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.proved = proved
}

// startProof reports whether it has to be found out now which cluster the server is.
func (r *remote) startProof(cluster *Cluster) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	now := time.Now()
	if r.proving == cluster && (r.proved != "" || now.Before(r.proveAgain)) {
		return false
	}

	r.proving, r.proved, r.proveAgain = cluster, "", now.Add(proofInterval)

	return true
}

// claimingSame returns the remote clusters that claim to be the same one as a cluster, and count as another.
func (p *Pool) claimingSame(r *remote, cluster *Cluster) []*remote {
	p.mu.Lock()
	defer p.mu.Unlock()

	var others []*remote

	uid := string(cluster.UID())

	for _, other := range p.remotes {
		connected := other.connected()
		if other != r && connected != nil && connected.UID() == cluster.UID() && other.identity(uid) != r.identity(uid) {
			others = append(others, other)
		}
	}

	return others
}

// sees writes an object with a random name and content into a cluster, and returns the first reader that finds it: it
// is connected to the same cluster. It returns nil if none does. What prevents that proves nothing.
func sees(ctx context.Context, writer *Cluster, namespace string, readers ...*Cluster) *Cluster {
	log := ctrl.LoggerFrom(ctx)

	const length = 32

	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha2.FieldOwner + "-proof-" + rand.String(length)},
		Data:       map[string]string{"proof": rand.String(length)},
	}

	writing, err := writer.configMaps(namespace)
	if err == nil {
		_, err = writing.Create(ctx, written, metav1.CreateOptions{FieldManager: v1alpha2.FieldOwner})
	}

	if err != nil {
		log.Info("Could not find out whether two connections are to the same cluster", "problem", err.Error())
		return nil
	}

	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofTimeout)
		defer cancel()

		if err := writing.Delete(ctx, written.Name, metav1.DeleteOptions{}); err != nil {
			log.Info("Could not delete an object", "object", "ConfigMap "+namespace+"/"+written.Name, "problem", err.Error())
		}
	}()

	for _, reader := range readers {
		reading, err := reader.configMaps(namespace)
		if err != nil {
			continue
		}

		read, err := reading.Get(ctx, written.Name, metav1.GetOptions{})
		if err == nil && read.Data["proof"] == written.Data["proof"] {
			return reader
		}
	}

	return nil
}

func (c *Cluster) configMaps(namespace string) (typedcorev1.ConfigMapInterface, error) {
	config := rest.CopyConfig(c.connection.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON

	clients, err := typedcorev1.NewForConfigAndClient(config, c.connection.HTTPClient)
	if err != nil {
		return nil, err
	}

	return clients.ConfigMaps(namespace), nil
}
