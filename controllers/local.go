package controllers

import (
	"net"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/export"
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

	local, err := clusters.NewCluster(connection, options.Holder, wakers.Wake)
	if err != nil {
		return nil, err
	}

	return local, mgr.Add(local)
}

// addInventory makes the manager keep clusterctl's inventory of the local cluster.
func addInventory(mgr ctrl.Manager, options Options, local *clusters.Cluster) error {
	if !options.ClusterctlInventory {
		return nil
	}

	kept, err := export.NewInventory(export.InventoryOptions{
		Config:      mgr.GetConfig(),
		HTTPClient:  mgr.GetHTTPClient(),
		Mapper:      mgr.GetRESTMapper(),
		Providers:   mgr.GetCache(),
		Definitions: local.Definitions,
		Events:      mgr.GetEventRecorder("capstan"),
		Namespaces:  options.Scope.CacheNamespaces(),
		Includes:    options.Scope.Includes,
	})
	if err != nil {
		return err
	}

	return mgr.Add(kept)
}
