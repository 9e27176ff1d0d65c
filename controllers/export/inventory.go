// Package export keeps clusterctl's inventory.
package export

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Inventory keeps clusterctl's inventory while it runs: one object for each provider that is installed in the
// operator's cluster, so that clusterctl knows what is installed, in which version. It is derived from the status
// of the provider resources, and read from watches: an operator that has nothing to change sends no requests.
// Create it with NewInventory.
type Inventory struct {
	InventoryOptions

	scheme *runtime.Scheme
	client client.Client
}

// InventoryOptions are what an Inventory shares with the rest of the operator.
type InventoryOptions struct {
	Config                 *rest.Config
	HTTPClient             *http.Client
	Mapper                 meta.RESTMapper
	Providers, Definitions cache.Cache
	Events                 events.EventRecorder

	// Namespaces are those of the provider resources; nil for all.
	Namespaces map[string]cache.Config
	// Includes reports whether the provider of a resource has an item.
	Includes func(client.Object) bool
}

// NewInventory creates an Inventory. It sends no requests until it is started.
func NewInventory(options InventoryOptions) (*Inventory, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterctlv1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}

	writer, err := client.New(options.Config, client.Options{
		Scheme: scheme, Mapper: options.Mapper, HTTPClient: options.HTTPClient,
	})
	if err != nil {
		return nil, err
	}

	return &Inventory{InventoryOptions: options, scheme: scheme, client: writer}, nil
}

// Start keeps the inventory while its CRD is served, until the context ends. A problem is logged, and no reason to
// stop the operator: providers do not need the inventory.
func (i *Inventory) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("inventory")

	changed, err := i.watchDefinition(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}

	for ctx.Err() == nil {
		if err := i.keepWhileServed(ctx, log, changed); err != nil && ctx.Err() == nil {
			log.Error(err, "Cannot keep clusterctl's inventory; correct the cause and restart the operator, or disable it with "+
				"--clusterctl-inventory=false")
		}

		select {
		case <-changed:
		case <-ctx.Done():
		}
	}

	return nil
}

// keepWhileServed installs the CRD if it does not exist, and keeps the inventory if and while the CRD is served.
func (i *Inventory) keepWhileServed(ctx context.Context, log logr.Logger, changed chan struct{}) error {
	served, err := i.ensureDefinition(ctx)
	if err != nil {
		log.Info("Cannot install the CustomResourceDefinition of clusterctl's inventory, which is kept as soon as it "+
			"exists; clusterctl installs it too", "name", definitionName, "problem", err.Error())
	}

	if !served {
		return nil
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()

	go func() {
		defer stop()

		i.followDefinition(ctx, changed)
	}()

	return i.keep(ctx, log)
}

// followDefinition waits until the CRD is no longer served, or the context ends.
func (i *Inventory) followDefinition(ctx context.Context, changed chan struct{}) {
	for i.isDefinitionServed(ctx) {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}

	notify(changed) // the change that ended this concerns the caller, too
}

// keep keeps the inventory until the context ends.
func (i *Inventory) keep(ctx context.Context, log logr.Logger) error {
	if err := i.awaitKind(ctx); err != nil {
		return err
	}

	items, err := cache.New(i.Config, cache.Options{
		Scheme: i.scheme, Mapper: i.Mapper, HTTPClient: i.HTTPClient,
		DefaultNamespaces: i.Namespaces,
	})
	if err != nil {
		return err
	}

	c, err := controller.NewUnmanaged("inventory", controller.Options{
		Reconciler:              newKeeper(i, items),
		MaxConcurrentReconciles: 1,         // a keeper is not safe for concurrent use
		SkipNameValidation:      new(true), // the CRD may be deleted and created again
		ReconciliationTimeout:   keepTimeout,
		LogConstructor:          func(*reconcile.Request) logr.Logger { return log.V(1) },
	})
	if err != nil {
		return err
	}

	item := client.Object(&clusterctlv1.Provider{})
	if err := c.Watch(source.Kind(items, item, &handler.EnqueueRequestForObject{})); err != nil {
		return err
	}

	for _, t := range v1alpha2.ProviderTypes() {
		if err := c.Watch(source.Kind(i.Providers, client.Object(t.New()), toItem())); err != nil {
			return err
		}
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return items.Start(ctx) })
	group.Go(func() error { return c.Start(ctx) })

	return group.Wait()
}

// keepTimeout bounds the work on one item.
const keepTimeout = time.Minute

// toItem maps a provider resource to its item.
func toItem() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		p, ok := o.(v1alpha2.Provider)
		if !ok {
			return nil
		}

		return []reconcile.Request{{
			NamespacedName: types.NamespacedName{Namespace: p.GetNamespace(), Name: v1alpha2.Label(p)},
		}}
	})
}
