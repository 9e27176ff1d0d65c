package export

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// keeper reconciles items. It is not safe for concurrent use.
type keeper struct {
	// providers and items read from caches.
	providers, items client.Reader
	// client writes items.
	client client.Client
	// includes reports whether the provider of a resource has an item.
	includes func(client.Object) bool
	events   events.EventRecorder

	// written is what this process has written last, by item.
	written map[types.NamespacedName]writtenItem
}

// writtenItem identifies an item as it was written.
type writtenItem struct {
	uid     types.UID
	version string // of the provider
}

func newKeeper(i *Inventory, items client.Reader) *keeper {
	return &keeper{
		providers: i.Providers,
		items:     items,
		client:    i.client,
		includes:  i.Includes,
		events:    i.Events,
		written:   map[types.NamespacedName]writtenItem{},
	}
}

// Reconcile brings one item up to date.
func (k *keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	provider, err := k.provider(ctx, req.NamespacedName)
	if err != nil || provider != nil && !k.includes(provider) {
		return reconcile.Result{}, err
	}

	// A lost status, or that of a resource that was created again, does not say yet whether the provider is installed.
	if provider != nil && provider.GetStatus().ObservedGeneration <= 0 {
		return reconcile.Result{}, nil
	}

	current := &clusterctlv1.Provider{}

	err = k.items.Get(ctx, req.NamespacedName, current)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}

	if err != nil {
		current = nil
	}

	var wanted *clusterctlv1.Provider
	if provider != nil {
		wanted = wantedItem(provider, current)
	}

	switch {
	case wanted == nil:
		err = k.remove(ctx, req.NamespacedName, current)
	case current == nil:
		err = k.create(ctx, provider, wanted)
	default:
		err = k.update(ctx, provider, current, wanted)
	}

	return reconcile.Result{}, ignoreExpected(err)
}

// ignoreExpected returns nil for errors that need no retry: the cache is older than the object, whose next event
// brings the item back, or the namespace is being deleted, with the resource.
func ignoreExpected(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}

	return err
}

// provider returns the resource of an item; nil if there is none.
func (k *keeper) provider(ctx context.Context, item types.NamespacedName) (v1alpha2.Provider, error) {
	kind, name := v1alpha2.ParseLabel(item.Name)
	provider := kind.New()

	err := k.providers.Get(ctx, types.NamespacedName{Namespace: item.Namespace, Name: name}, provider)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	return provider, err
}

// remove deletes an item that Capstan keeps. Those of providers that clusterctl has installed stay, and so do those of
// providers that stay installed without their resource: they are clusterctl's from then on.
func (k *keeper) remove(ctx context.Context, name types.NamespacedName, current *clusterctlv1.Provider) error {
	delete(k.written, name)

	if current == nil || !isOwn(current) {
		return nil
	}

	if current.Annotations[v1alpha2.KeepInstalledAnnotation] == "true" {
		released := current.DeepCopy()
		delete(released.Labels, v1alpha2.ManagedByLabel)
		delete(released.Annotations, v1alpha2.KeepInstalledAnnotation)

		patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})

		return client.IgnoreNotFound(k.client.Patch(ctx, released, patch, client.FieldOwner(v1alpha2.FieldOwner)))
	}

	return client.IgnoreNotFound(k.client.Delete(ctx, current, client.Preconditions{UID: &current.UID}))
}

// create creates an item, and announces it if another program has deleted it.
func (k *keeper) create(ctx context.Context, p v1alpha2.Provider, item *clusterctlv1.Provider) error {
	if err := k.client.Create(ctx, item, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return err
	}

	if _, deleted := k.written[client.ObjectKeyFromObject(item)]; deleted {
		k.announce(p, "deleted")
	}

	k.remember(item)

	return nil
}

// update brings an item to what is wanted, and announces it if another program has changed what was written.
func (k *keeper) update(ctx context.Context, p v1alpha2.Provider, current, wanted *clusterctlv1.Provider) error {
	if equality.Semantic.DeepEqual(current, wanted) {
		k.remember(wanted)
		return nil
	}

	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := k.client.Patch(ctx, wanted, patch, client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return client.IgnoreNotFound(err)
	}

	last, known := k.written[client.ObjectKeyFromObject(current)]
	if known && last.uid == current.UID && last.version != current.Version {
		k.announce(p, fmt.Sprintf("set to %s by %s", current.Version, object.LastManager(current)))
	}

	k.remember(wanted)

	return nil
}

func (k *keeper) remember(item *clusterctlv1.Provider) {
	k.written[client.ObjectKeyFromObject(item)] = writtenItem{uid: item.UID, version: item.Version}
}

// announce emits an event that the item of a provider was changed by another program.
func (k *keeper) announce(p v1alpha2.Provider, what string) {
	for _, e := range report.InventoryRestored(v1alpha2.Label(p), what) {
		k.events.Eventf(p, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
}
