package controllers

import (
	"context"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/usage"
)

// Limits of the requests for facts. They have a budget of their own, so that readers never use up the controllers'.
const (
	factsPerSecond = 50
	factsBurst     = 200
	// Those that search for objects of providers' kinds have another one, because no page waits for them.
	searchesPerSecond = 20
	searchesBurst     = 20
)

// newFacts returns a reader of facts about the providers of a cluster. It makes no requests for records of releases and
// CRDs that the controllers have anyway.
func newFacts(mgr ctrl.Manager, local *clusters.Cluster) (*facts.Reader, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), crds.AddToScheme(scheme), v1alpha2.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}

	config := rest.CopyConfig(mgr.GetConfig())
	config.RateLimiter = nil
	config.QPS, config.Burst = factsPerSecond, factsBurst

	uncached, err := client.New(config, client.Options{
		Scheme: scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
	})
	if err != nil {
		return nil, err
	}

	config = rest.CopyConfig(config)
	config.QPS, config.Burst = searchesPerSecond, searchesBurst

	objects, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}

	reader := &factsClient{Client: uncached, definitions: local.Definitions}

	return &facts.Reader{
		Client:   reader,
		Releases: local.OwnTarget().Releases,
		Finder:   &usage.Finder{Client: reader, Metadata: objects},
	}, nil
}

// factsClient lists CRDs from a cache without their schemas, and reads all else from the API server.
type factsClient struct {
	client.Client

	definitions client.Reader
}

// List lists objects.
func (c *factsClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*apiextensionsv1.CustomResourceDefinitionList); ok {
		// The cache starts when this process becomes the leader.
		if err := c.definitions.List(ctx, list, options...); !errors.As(err, new(*cache.ErrCacheNotStarted)) {
			return err
		}
	}

	return c.Client.List(ctx, list, options...)
}
