package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Connection is what all actions on the releases of one cluster share: HTTP connections, and the
// cluster's APIs and kinds, which are kept in memory.
type Connection struct {
	config    *rest.Config
	http      *http.Client
	metadata  metadata.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper

	mu      sync.Mutex
	clients map[schema.GroupVersion]resource.RESTClient
}

// Connect returns a connection to the cluster of the configuration, which must not be changed
// afterwards. It makes no request.
func Connect(config *rest.Config) (*Connection, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	cached := memory.NewMemCacheClient(client)

	return &Connection{
		config:    config,
		http:      httpClient,
		metadata:  metadataClient,
		discovery: cached,
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(cached),
		clients:   map[schema.GroupVersion]resource.RESTClient{},
	}, nil
}

// HTTP returns the HTTP client of the connection, for other clients of the cluster.
func (c *Connection) HTTP() *http.Client { return c.http }

// Metadata returns a client for the metadata of objects.
func (c *Connection) Metadata() metadata.Interface { return c.metadata }

// Refresh forgets the cluster's APIs and kinds, so that they are fetched when next needed.
func (c *Connection) Refresh() {
	c.mapper.Reset() // invalidates the discovery cache too
}

// Mapping returns the resource of a kind. The error is a NoMatchError if no API has that kind, and
// another one if the server of its API does not respond.
func (c *Connection) Mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}

	gv := kind.GroupVersion().String()

	_, failed := c.discovery.ServerResourcesForGroupVersion(gv)
	if failed != nil && !errors.Is(failed, memory.ErrCacheNotFound) {
		return nil, fmt.Errorf("the API %s does not respond: %w; check its APIService and the server behind it", gv, failed)
	}

	return nil, err
}

// restClient returns the REST client for the kinds of a group and version.
func (c *Connection) restClient(gv schema.GroupVersion) (resource.RESTClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if client, ok := c.clients[gv]; ok {
		return client, nil
	}

	config := rest.CopyConfig(c.config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion = &gv

	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}

	client, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", gv, err)
	}

	c.clients[gv] = client

	return client, nil
}
