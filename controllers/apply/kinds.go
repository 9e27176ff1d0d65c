package apply

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Kinds are the APIs and kinds of a cluster, as they were discovered last. All accounts share them.
type Kinds struct {
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
}

// NewKinds returns the kinds of the cluster of a configuration. It makes no request.
func NewKinds(config *rest.Config, httpClient *http.Client) (*Kinds, error) {
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, withTimeout(httpClient))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}

	cached := memory.NewMemCacheClient(discoveryClient)

	return &Kinds{discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// Refresh forgets the cluster's APIs and kinds, so that they are fetched when next needed.
func (k *Kinds) Refresh() {
	k.mapper.Reset() // invalidates the discovery cache too
}

// Mapping returns the resource of a kind. The error is a NoMatchError if no API has that kind, and
// another one if the server of its API does not respond.
func (k *Kinds) Mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}

	gv := kind.GroupVersion().String()

	_, failed := k.discovery.ServerResourcesForGroupVersion(gv)
	if failed != nil && !errors.Is(failed, memory.ErrCacheNotFound) {
		return nil, fmt.Errorf("the API %s does not respond: %w; check its APIService and the server behind it", gv, failed)
	}

	return nil, err
}
