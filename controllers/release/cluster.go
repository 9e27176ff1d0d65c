package release

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// cluster is what all actions share of the connection to a cluster: HTTP connections, discovery,
// kinds and capabilities, all in memory and fetched once. Without it, Helm would discover the whole
// API anew in each action, and cache it on disk.
type cluster struct {
	config    *rest.Config
	http      *http.Client
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper

	mu           sync.Mutex
	capabilities *chartutil.Capabilities
	clients      map[schema.GroupVersion]resource.RESTClient
}

var _ genericclioptions.RESTClientGetter = (*cluster)(nil)

// newCluster takes a configuration that is its own from then on.
func newCluster(config *rest.Config) (*cluster, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	cached := memory.NewMemCacheClient(client)

	return &cluster{
		config:    config,
		http:      httpClient,
		discovery: cached,
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(cached),
		clients:   map[schema.GroupVersion]resource.RESTClient{},
	}, nil
}

// refresh forgets kinds and capabilities, so that they are fetched when next asked for.
func (c *cluster) refresh() {
	c.mapper.Reset() // invalidates the discovery cache too
	c.mu.Lock()
	defer c.mu.Unlock()

	c.capabilities = nil
}

// caps are what templates may ask of the cluster: its version and its API versions.
func (c *cluster) caps() (*chartutil.Capabilities, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.capabilities != nil {
		return c.capabilities, nil
	}

	version, err := c.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}

	apis, err := action.GetVersionSet(c.discovery)
	// an API whose server is down must not stop all others
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the API server for its APIs: %w", err)
	}

	c.capabilities = &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: apis,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}

	return c.capabilities, nil
}

// mapping finds the resource of a kind. A kind that no API has is a NoMatchError; one whose API
// server does not answer is another error.
func (c *cluster) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}

	gv := kind.GroupVersion().String()
	if _, silent := c.discovery.ServerResourcesForGroupVersion(gv); silent != nil &&
		!errors.Is(silent, memory.ErrCacheNotFound) {
		return nil, fmt.Errorf("the API %s does not answer: %w; see to its APIService and the server behind it", gv, silent)
	}

	return nil, err
}

// client gives the REST client for the kinds of a group version.
func (c *cluster) client(gv schema.GroupVersion) (resource.RESTClient, error) {
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
		return nil, fmt.Errorf("make a client for %s: %w", gv, err)
	}

	c.clients[gv] = client

	return client, nil
}

// ToRESTConfig returns a copy, because kubectl's library writes into what it gets.
func (c *cluster) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(c.config), nil }

// ToDiscoveryClient returns the shared cache.
func (c *cluster) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return c.discovery, nil
}

// ToRESTMapper returns the shared mapper.
func (c *cluster) ToRESTMapper() (meta.RESTMapper, error) { return c.mapper, nil }

// ToRawKubeConfigLoader is never asked: every namespace is given.
func (c *cluster) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, nil)
}
