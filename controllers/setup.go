// Package controllers sets up the operator's controllers: one for each kind of provider resource, with
// what they share. What a controller does is in package provider.
package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/provider"
	"github.com/capstan-project/capstan/controllers/seats"
	"github.com/capstan-project/capstan/controllers/watch"
)

const (
	// minRemoteInterval is the shortest Options.RemoteInterval.
	minRemoteInterval = 10 * time.Second
	// reconcileTimeout bounds a reconcile.
	reconcileTimeout = 5 * time.Minute
	// maxDelay is the longest time between two attempts of a reconcile that fails.
	maxDelay = time.Minute
)

// Setup adds a controller for each kind to the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := options.SourcePolicy.Parse(apiServers(mgr)...); err != nil {
		return err
	}

	if options.RemoteInterval < minRemoteInterval {
		return fmt.Errorf("--remote-interval must be at least %s, not %s", minRemoteInterval, options.RemoteInterval)
	}

	// The indexes are only registered: nothing is read yet that a context could cancel.
	if err := watch.IndexProviders(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}

	wakers := &watch.Wakers{}

	local, err := localCluster(mgr, options, wakers)
	if err != nil {
		return err
	}

	if err := watch.FollowProviders(context.Background(), mgr.GetCache(), local.Watches); err != nil {
		return err
	}

	dependencies, err := newDependencies(mgr, options, local, wakers)
	if err != nil {
		return err
	}

	if dependencies.Inventory, err = newInventory(mgr, options, wakers); err != nil {
		return err
	}

	if err := mgr.Add(dependencies.Offers); err != nil {
		return err
	}

	for _, t := range v1alpha2.ProviderTypes() {
		kind := watch.Kind{
			Cache: mgr.GetClient(), Cluster: dependencies.Clusters.Identity, Type: t, Scope: options.Scope,
		}
		b := watchCluster(kind.Providers(newController(mgr, options, kind)), local, wakers, kind)

		if err := b.Complete(&provider.Reconciler{Dependencies: dependencies, Type: t}); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", t, err)
		}
	}

	return nil
}

// NewUncachedClient returns a client that reads from the API server.
func NewUncachedClient(mgr ctrl.Manager) (client.Client, error) {
	return client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
	})
}

// newDependencies creates what the reconcilers share.
func newDependencies(
	mgr ctrl.Manager, options Options, local *clusters.Cluster, wakers *watch.Wakers,
) (*provider.Dependencies, error) {
	uncached, err := NewUncachedClient(mgr)
	if err != nil {
		return nil, err
	}

	if err := options.Registry.CheckVerifyKeys(); err != nil {
		return nil, err
	}

	readers := options.readers(uncached)
	readers.Impersonate = local.Reader

	planner := options.planner(readers, uncached, mgr.GetClient())

	// What sources offer is found out by other workers.
	offering := *planner.Sources
	offering.Watched, offering.Metadata = local.Watches.Find, planner.Charts.Metadata
	planner.Sources.Seats = seats.OfKinds(options.Concurrency)

	pool := &clusters.Pool{
		Local:      local,
		Readers:    readers,
		Addresses:  &options.SourcePolicy.Guard,
		Scheme:     uncached.Scheme(),
		Namespaces: options.Scope.CacheNamespaces(),
		Seats:      planner.Sources.Seats,
	}

	planner.Cluster, planner.AwaitCore = pool.Identity, true
	tracker := offers.NewTracker(&offering, wakers.Wake)
	resources := consistency.NewClient(mgr.GetClient(), uncached)

	return &provider.Dependencies{
		Client:    resources,
		APIReader: uncached,
		Scope:     options.Scope,
		Clusters:  pool,
		Watches:   local.Watches,
		Planner:   planner,
		Preflight: &preflight.Checker{Client: mgr.GetClient(), Cluster: pool.Identity, Namespace: options.Namespace},
		Offers:    tracker,

		Events:         mgr.GetEventRecorder("capstan"),
		Wake:           wakers.Wake,
		RemoteInterval: options.RemoteInterval,
		Suspended:      options.Suspended,

		WatchConfigMaps: options.WatchConfigMaps,
		WatchSecrets:    options.WatchSecrets,

		Metrics: options.Metrics,
	}, nil
}

// NewPreviewPlanner returns the operator's planner for a command, which reads all with the permissions of a client,
// whatever a resource names.
func NewPreviewPlanner(c client.Client, options Options) *plan.Planner {
	return options.planner(options.readers(c), c, c)
}

// readers returns readers of what resources name.
func (o *Options) readers(uncached client.Reader) *access.Readers {
	return &access.Readers{
		APIReader:             uncached,
		DefaultServiceAccount: o.DefaultServiceAccount,
		NoCrossNamespaceRefs:  o.ACL.NoCrossNamespaceRefs,
	}
}

// planner returns a planner that stores charts with a client and lists providers with a reader.
func (o *Options) planner(readers *access.Readers, charts client.Client, providers client.Reader) *plan.Planner {
	return &plan.Planner{
		Cache:   providers,
		Readers: readers,
		Sources: &fetch.Resolver{
			Readers:  readers,
			Catalog:  o.Catalog,
			Registry: o.Registry,
			Policy:   &o.SourcePolicy,
		},
		Charts:        plan.NewCharts(&store.Store{Client: charts, Namespace: o.Namespace}, providers, o.Metrics),
		ImageRegistry: o.ImageRegistry,
		Managers:      o.Managers,
		Environment:   o.Environment,
		Metrics:       o.Metrics,
	}
}

// newController begins the controller of a kind.
func newController(mgr ctrl.Manager, options Options, kind watch.Kind) *builder.Builder {
	touched := predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
		predicate.LabelChangedPredicate{},
		watch.StatusLost,
	)

	// Seven controllers with a dozen watches each log a hundred times that they start: that is for
	// debugging.
	logger := func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return mgr.GetLogger().V(1)
		}

		return mgr.GetLogger().WithValues("kind", kind.Type, "namespace", req.Namespace, "name", req.Name)
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named(string(kind.Type)).
		For(kind.Type.New(), builder.WithPredicates(touched, kind.Scope.Concerns())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.Concurrency,
			LogConstructor:          logger,
			// A resource whose reconcile fails is tried again later each time. What fails is not the resource's fault, such as
			// requests that the API server sometimes fails: each attempt sends many.
			RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, maxDelay),
			ReconciliationTimeout: reconcileTimeout,
		})
}

// watchCluster watches what the resources of a kind refer to and have in the local cluster.
func watchCluster(
	b *builder.Builder, local *clusters.Cluster, wakers *watch.Wakers, kind watch.Kind,
) *builder.Builder {
	return b.
		WatchesRawSource(kind.Definitions(local.Definitions, local.OwnTarget().CRDs)).
		WatchesRawSource(local.Watches.Source(namespaces.ConfigMaps, kind.Inputs("ConfigMap"))).
		WatchesRawSource(local.Watches.Source(namespaces.Secrets, kind.Inputs("Secret"))).
		WatchesRawSource(local.Watches.Source(namespaces.Secrets, kind.Releases())).
		WatchesRawSource(local.Watches.Source(namespaces.Secrets, kind.Certificates())).
		WatchesRawSource(wakers.Source(kind.Type))
}
