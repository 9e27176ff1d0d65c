// Package controllers keeps every provider resource's Helm release as the resource says. One
// generic reconciler serves all seven kinds; what it knows of a provider while it works lives in
// its arguments, never in its fields.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/values"
)

// Reconciler reconciles the resources of one kind.
type Reconciler struct {
	client.Client
	// Live reads from the API server itself: Secrets and ConfigMaps are never cached.
	Live client.Reader
	// Type is the kind, and Scope which of its resources are reconciled.
	Type  v1alpha2.ProviderType
	Scope Scope
	// Targets are where providers are installed. Target is the one that a reconcile works on, in
	// the copy of the Reconciler that it works with.
	Targets *clusters.Registry
	*clusters.Target

	Charts *Charts
	// ImageRegistry takes the place of the registry of every image; empty leaves them.
	ImageRegistry string
	Preflight     *preflight.Checker
	Upgrades      *Upgrades
	Events        events.EventRecorder
	// Wake brings a resource back after a while.
	Wake health.Wake
	// Permitted are the digests of what accounts may install, by the resource's UID.
	Permitted *sync.Map
	// Corrections are those of all kinds.
	Corrections *corrections
	// MigrationDelay is how long a healthy manager is given to rewrite objects in a new storage
	// version itself.
	MigrationDelay time.Duration
	// Metrics counts what happens; it may be nil.
	Metrics *metrics.Recorder
}

// Reconcile brings one provider nearer to what its resource says, and never waits for it to get
// there.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	// From the API server itself: a status that lags behind our own last write would hide that it
	// must change back.
	provider := r.Type.New()
	if err := r.Live.Get(ctx, req.NamespacedName, provider); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !r.Scope.Includes(provider) { // its objects, of which some are in no namespace, have woken it
		return ctrl.Result{}, nil
	}

	if provider.GetDeletionTimestamp().IsZero() && !provider.GetSpec().Suspend {
		if err := r.setFinalizer(ctx, provider, controllerutil.AddFinalizer); err != nil {
			return ctrl.Result{}, err
		}
	}

	before := provider.DeepCopyObject().(v1alpha2.Provider)
	defer func() {
		r.announce(provider, conditions.Get(before, v1alpha2.ReadyCondition))
		provider.GetStatus().ObservedGeneration = provider.GetGeneration()
		err = errors.Join(err, r.saveStatus(ctx, before, provider))
	}()

	return conclude(provider, r.work(ctx, provider))
}

// remoteTimeout bounds the work on a remote cluster, which may not answer.
const remoteTimeout = time.Minute

// work does what the resource asks for, where it asks for it.
func (r *Reconciler) work(ctx context.Context, provider v1alpha2.Provider) error {
	to, err := r.Targets.For(ctx, provider)
	if err != nil {
		return err
	}

	there := *r

	there.Target = to
	if to.Remote {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, remoteTimeout)
		defer cancel()
	}

	switch {
	case provider.GetSpec().Suspend:
		return there.report(ctx, provider)
	case !provider.GetDeletionTimestamp().IsZero():
		return there.remove(ctx, provider)
	}

	r.Metrics.Known(provider)
	err = there.install(ctx, provider)
	provider.GetStatus().LastHandledReconcileAt = provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]

	return err
}

// saveStatus writes the status if it has changed, in one request. Nobody else writes it.
func (r *Reconciler) saveStatus(ctx context.Context, before, provider v1alpha2.Provider) error {
	if equality.Semantic.DeepEqual(before.GetStatus(), provider.GetStatus()) {
		return nil
	}

	err := r.Status().Patch(ctx, provider, client.MergeFrom(before), client.FieldOwner(v1alpha2.FieldOwner))

	return client.IgnoreNotFound(err)
}

// setFinalizer adds or removes the finalizer, at once.
func (r *Reconciler) setFinalizer(
	ctx context.Context,
	provider v1alpha2.Provider,
	set func(client.Object, string) bool,
) error {
	before := provider.DeepCopyObject().(v1alpha2.Provider)
	if !set(provider, v1alpha2.Finalizer) {
		return nil
	}

	changed := provider.DeepCopyObject().(v1alpha2.Provider) // the answer must not undo what the status has become
	err := r.Patch(ctx, changed, client.MergeFrom(before), client.FieldOwner(v1alpha2.FieldOwner))
	provider.SetResourceVersion(changed.GetResourceVersion())

	return client.IgnoreNotFound(err)
}

// requested reports whether a person asks to look at everything anew, at once.
func requested(provider v1alpha2.Provider) bool {
	return provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation] != provider.GetStatus().LastHandledReconcileAt
}

// install is the whole way from a resource to a healthy release. Each step returns what the next
// needs, or why it goes no further; all steps are cheap when nothing they depend on has changed.
func (r *Reconciler) install(ctx context.Context, provider v1alpha2.Provider) error {
	if err := r.Preflight.Identity(ctx, provider); err != nil {
		return err
	}

	if to := releaseSpec(provider.GetSpec()).RollbackTo; to != nil {
		return r.rollBackTo(ctx, provider, int(*to))
	}

	chart, err := r.chart(ctx, provider)
	if err != nil {
		return err
	}

	variables, err := values.Variables(ctx, r.Live, provider)
	if err != nil {
		return err
	}

	if err := r.Charts.Sources.AddImages(variables); err != nil {
		return err
	}

	desired, err := r.desired(ctx, provider, chart, variables)
	if err != nil {
		return err
	}

	checked := r.preflight(ctx, provider, chart, variables)
	if problem := new(preflight.Problem); checked != nil && (!errors.As(checked, &problem) || !problem.CRDs) {
		return checked
	}

	if err := r.permitted(ctx, provider, chart, desired); err != nil {
		return err
	}

	if err := errors.Join(r.applyCRDs(ctx, provider, chart), checked); err != nil {
		return err
	}

	g, err := r.installGoal(desired)
	if err != nil {
		return err
	}

	err = r.reach(ctx, provider, g, func() error { return r.crdsServed(ctx, chart) })
	if moved, looked := r.Upgrades.report(ctx, provider); looked {
		r.reportMove(provider, moved)
	}

	if err != nil {
		return err
	}

	return r.migrateCRDs(ctx, provider, chart)
}

// chart resolves the version and finds its chart. The version is pinned in status, so that a range
// floats only when the spec changes, and an empty one is written into the spec.
func (r *Reconciler) chart(ctx context.Context, provider v1alpha2.Provider) (*providerChart, error) {
	defer r.Metrics.Step(r.Type, metrics.StepChart)()

	from, err := r.Charts.Sources.Source(provider)
	if err != nil {
		return nil, err
	}

	status := provider.GetStatus()

	picked, err := source.Resolve(ctx, from, provider.GetSpec().Version, status.DesiredVersion)
	if err != nil {
		return nil, err
	}

	status.DesiredVersion = picked.Name

	chart, err := r.Charts.find(ctx, provider, from, picked, requested(provider))
	if err != nil {
		return nil, err
	}

	status.Chart = chart.status(status.Chart)

	return chart, r.pinVersion(ctx, provider, picked.Name)
}

// pinVersion writes into the spec what an empty version came to. A version that somebody sets
// meanwhile is not overwritten.
func (r *Reconciler) pinVersion(ctx context.Context, provider v1alpha2.Provider, version string) error {
	if provider.GetSpec().Version != "" {
		return nil
	}

	changed := provider.DeepCopyObject().(v1alpha2.Provider) // as in setFinalizer

	patch := fmt.Appendf(
		nil,
		`{"metadata":{"resourceVersion":%q},"spec":{"version":%q}}`,
		provider.GetResourceVersion(),
		version,
	)
	if err := r.Patch(
		ctx,
		changed,
		client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(v1alpha2.FieldOwner),
	); err != nil {
		return fmt.Errorf("write version %s into spec.version: %w", version, err)
	}

	provider.GetSpec().Version = version

	return nil
}

// preflight makes sure that the chart may be installed, before anything is applied.
func (r *Reconciler) preflight(
	ctx context.Context,
	provider v1alpha2.Provider,
	chart *providerChart,
	variables map[string]string,
) error {
	defer r.Metrics.Step(r.Type, metrics.StepPreflight)()

	status := provider.GetStatus()
	status.MissingVariables = values.Missing(chart.schema.Required, variables)

	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider:         provider,
		Mapper:           r.Cluster.RESTMapper(),
		Contract:         chart.contract(),
		RequiredKinds:    chart.requiredKinds(),
		MissingVariables: status.MissingVariables,
	})
	if err != nil {
		return err
	}

	status.Contract = nil
	if contract := chart.contract(); contract != "" {
		status.Contract = &contract
	}

	conditions.MarkTrue(
		provider,
		v1alpha2.PreflightCheckCondition,
		v1alpha2.PreflightChecksPassedReason,
		"All preflight checks passed",
	)

	return nil
}

// announce makes an event of a change of Ready, and a log line.
func (r *Reconciler) announce(provider v1alpha2.Provider, before *metav1.Condition) {
	now := conditions.Get(provider, v1alpha2.ReadyCondition)
	if now == nil || before != nil && before.Reason == now.Reason && before.Message == now.Message {
		return
	}

	kind := corev1.EventTypeNormal
	if conditions.Has(provider, v1alpha2.StalledCondition) {
		kind = corev1.EventTypeWarning
	}

	r.Events.Eventf(provider, nil, kind, now.Reason, "Reconcile", "%s", now.Message)
}
