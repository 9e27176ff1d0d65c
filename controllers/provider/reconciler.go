// Package provider keeps a provider's Helm release in sync with the provider's resource.
//
// Every reconcile is one run, in two parts:
//
//   - Care for what is installed, always: the newest revision in Helm's storage is observed, its
//     objects are corrected where they drifted, and their health is read from the watches. A revision
//     that does not become healthy in time, or was not applied completely, is rolled back. CRDs of the
//     installed chart are restored.
//   - Change towards the spec: the plan of what the resource asks for is compared with the release.
//     Before anything is applied, gates check that it may be: contracts, variables, permissions, CRDs.
//     A gate stops the change and never the care.
//
// From what the run has found out, and how care and change ended, its report follows: the status with its conditions,
// events, and when to look again.
package provider

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/inventory"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/watch"
)

const (
	// remoteTimeout bounds each part of the work on a remote cluster, which may not answer.
	remoteTimeout = time.Minute
	// conflictRetry is how soon a resource that another program has changed meanwhile is read again.
	conflictRetry = 100 * time.Millisecond
)

// Reconciler reconciles the resources of one kind. What it knows about a provider during a reconcile
// is in a run.
type Reconciler struct {
	*Dependencies
	// Type is the kind.
	Type v1alpha2.ProviderType

	memories memories
}

// Dependencies are shared by the reconcilers of all kinds.
type Dependencies struct {
	// Client reads provider resources, and writes them.
	Client *consistency.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Scope selects the resources that are reconciled.
	Scope watch.Scope
	// Clusters are the clusters that providers are installed in.
	Clusters *clusters.Pool
	// Watches show the ConfigMaps and Secrets that resources name.
	Watches   *namespaces.Watches
	Planner   *plan.Planner
	Preflight *preflight.Checker
	Offers    *offers.Tracker
	Inventory *inventory.Inventory
	Events    events.EventRecorder
	// Wake enqueues a resource after a delay.
	Wake health.Wake
	// RemoteInterval is how often what is installed in remote clusters is looked at while nothing changes.
	RemoteInterval time.Duration
	// Suspended has the effect of spec.suspend of all resources.
	Suspended bool
	// WatchConfigMaps and WatchSecrets make changes of inputs of these kinds take effect at once.
	WatchConfigMaps, WatchSecrets bool
	// Metrics counts what happens; it may be nil.
	Metrics *metrics.Recorder
}

// Reconcile brings one provider closer to what its resource asks for, and never waits for anything to
// become ready.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	// A status older than our own last write would hide that it must change back.
	provider := r.Type.New()
	if err := r.Client.Read(ctx, req.NamespacedName, provider); err != nil {
		if apierrors.IsNotFound(err) {
			r.forgetGone(req.NamespacedName)
		}

		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	// The objects of a resource out of scope may have woken it, or its labels have changed.
	if !r.Scope.Includes(provider) {
		r.forgetGone(req.NamespacedName)
		return ctrl.Result{}, nil
	}

	if r.Suspended {
		provider.GetSpec().Suspend = true
	}

	run := newRun(r, provider)
	listed, version := inventory.Lists(provider), inventory.Version(provider)
	panicked := true

	defer func() {
		// The panic continues: controller-runtime logs it with its stack, counts it, and retries.
		if panicked {
			run.endPanicked()
		}

		if listed != inventory.Lists(provider) || version != inventory.Version(provider) || run.checksItem() {
			run.list(ctx, listed)
		}

		err = errors.Join(err, run.status.save(ctx, provider))
	}()

	result, err = run.end(unlessCanceled(ctx, run.reconcile(ctx)))
	panicked = false

	return result, err
}

// itemTime is how long the item of a provider in clusterctl's inventory is taken to be as it was written or read.
const itemTime = time.Minute

// checksItem reports whether the item is compared with the provider although it has the version that it had. Until a
// provider is ready, nothing else that its item has usually changes.
func (r *run) checksItem() bool {
	known := r.memory.listed
	return known.IsZero() || v1alpha2.IsReady(r.provider) && time.Since(known) > itemTime
}

// list brings the item of a provider up to date. listed is set if it had one when the reconcile began.
func (r *run) list(ctx context.Context, listed bool) {
	r.memory.listed = time.Time{}

	if r.Inventory.Update(ctx, r.provider, listed) {
		r.memory.listed = time.Now()
	}
}

// setFinalizer adds or removes the finalizer at once. A patch replaces all finalizers, so it is a
// conflict if another program has changed the resource since it was read.
func (r *Reconciler) setFinalizer(
	ctx context.Context, provider v1alpha2.Provider, set func(client.Object, string) bool,
) error {
	before := cloneProvider(provider)
	if !set(provider, v1alpha2.Finalizer) {
		return nil
	}

	// A copy takes the answer, which must not overwrite the status that this reconcile has computed.
	changed := cloneProvider(provider)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha2.FieldOwner))
	provider.SetResourceVersion(changed.GetResourceVersion())

	return client.IgnoreNotFound(err)
}
