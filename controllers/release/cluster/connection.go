package cluster

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/paging"
)

// Connection is what all actions on the releases of one cluster share: HTTP connections, and the
// cluster's APIs and kinds, which are kept in memory.
type Connection struct {
	http      *http.Client
	metadata  metadata.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
	client    client.Client
	trial     client.Client // its changes are dry runs
}

// Connect returns a connection to the cluster of the configuration, which must not be changed
// afterwards. It makes no request.
func Connect(config *rest.Config) (*Connection, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), paging.Impatient(httpClient))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	cached := memory.NewMemCacheClient(discoveryClient)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)

	objects, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	objects = client.WithFieldOwner(objects, v1alpha2.FieldOwner)

	return &Connection{
		http:      httpClient,
		metadata:  metadataClient,
		discovery: cached,
		mapper:    mapper,
		client:    objects,
		trial:     client.NewDryRunClient(objects),
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
