package attack

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// impostorAttempts have API servers of the tenant that claim to be the operator's own cluster.
var impostorAttempts = []attempt{
	{"An API server that says it is the operator's own cluster, with a core and a provider of another user's name",
		func(a *arena) string {
			kubeconfig, room := a.impostor()

			theirs := small{room, a.name, "v1.0.0", ""}
			core := small{room, v1alpha2.CoreProviderName, "v1.0.0", ""}
			contested := theirs.resource()
			p := &v1alpha2.CoreProvider{ObjectMeta: named(room, core.name)}
			automatic(core.resource()).Spec.DeepCopyInto(&p.Spec)

			for _, spec := range []*v1alpha2.ProviderSpec{&p.Spec, &contested.Spec} {
				spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
					LocalSecretReference: v1alpha2.LocalSecretReference{Name: kubeconfig.Name}, Key: "value",
				}}
			}

			a.create(kubeconfig, core.configMap(), p, theirs.configMap(), contested)

			// It is installed there, and its status says that this is the operator's own cluster.
			a.Eventually(a.installed(contested)).Should(Equal("v1.0.0"))
			a.Expect(contested.Status.Release.ClusterUID).To(Equal(a.clusterUID(a.admin)))

			ours := small{victim, a.name, "v1.0.0", ""}
			a.provide(ours.configMap(), ours.resource())
			a.Expect(a.outcome(ours.resource())).To(HavePrefix(v1alpha2.HealthyReason))

			return "another user's provider is installed; " + a.victimIsUpgraded()
		}},
}

// impostor starts an API server of the tenant that answers the UID of the operator's own cluster. It returns a
// kubeconfig for it, and the namespace that it is for: the account of providers may do everything there.
func (a *arena) impostor() (kubeconfig *corev1.Secret, room string) {
	a.Helper()

	far := bedtest.StartAPIServer(a.T)
	room = a.room()

	there, err := client.NewWithWatch(far.Config(), client.Options{Scheme: harness.Scheme()})
	a.Expect(err).NotTo(HaveOccurred())

	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: named("", room)}, &corev1.ServiceAccount{ObjectMeta: named(room, "limited")},
	} {
		a.Expect(there.Create(a.ctx, o)).To(Succeed())
	}

	(&world{admin: there}).bind(a.T, "", "cluster-admin", account(room, "limited"))

	claimed := a.clusterUID(a.admin)
	a.Expect(a.clusterUID(there)).NotTo(Equal(claimed))

	target, err := url.Parse(far.Config().Host)
	a.Expect(err).NotTo(HaveOccurred())

	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization")
	}}
	proxy.Transport, err = rest.TransportFor(far.Config())
	a.Expect(err).NotTo(HaveOccurred())

	server := a.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			proxy.ServeHTTP(w, r)
			return
		}

		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q}}`, claimed)
	}))

	kubeconfig = a.kubeconfig(server, nil)
	kubeconfig.Namespace = room

	return kubeconfig, room
}

// clusterUID returns the UID of a cluster.
func (a *arena) clusterUID(c client.Client) string {
	a.Helper()

	namespace := &corev1.Namespace{}
	a.Expect(c.Get(a.ctx, client.ObjectKey{Name: "kube-system"}, namespace)).To(Succeed())

	return string(namespace.UID)
}
