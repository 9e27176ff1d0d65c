package controllers

import (
	"net"
	"os"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/inventory"
	"github.com/capstan-project/capstan/controllers/watch"
)

// apiServers returns the addresses of the API server: the one in use and, in a pod, that of its Service.
func apiServers(mgr ctrl.Manager) []string {
	addresses := []string{mgr.GetConfig().Host}

	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		addresses = append(addresses, net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT")))
	}

	return addresses
}

// localCluster connects to the cluster that the provider resources are in, and starts its watches with
// the manager.
func localCluster(mgr ctrl.Manager, options Options, wakers *watch.Wakers) (*clusters.Cluster, error) {
	connection := clusters.Connection{
		Config:     mgr.GetConfig(),
		HTTPClient: mgr.GetHTTPClient(),
		Mapper:     mgr.GetRESTMapper(),
		Scheme:     mgr.GetScheme(),
		Namespaces: options.Scope.CacheNamespaces(),
	}

	local, err := clusters.NewCluster(connection, wakers.Wake)
	if err != nil {
		return nil, err
	}

	return local, mgr.Add(local)
}

// newInventory returns clusterctl's inventory of the local cluster; nil if the operator keeps none.
func newInventory(mgr ctrl.Manager, options Options, wakers *watch.Wakers) (*inventory.Inventory, error) {
	if !options.ClusterctlInventory {
		return nil, nil
	}

	if err := clusterctlv1.AddToScheme(mgr.GetScheme()); err != nil {
		return nil, err
	}

	uncached, err := NewUncachedClient(mgr)

	return &inventory.Inventory{Client: uncached, Wake: wakers.Wake}, err
}
