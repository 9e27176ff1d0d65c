// Package controllers keeps every provider resource's Helm release as the resource says. One generic reconciler serves
// all seven kinds; what it knows of a provider while it works lives in its arguments, never in its fields.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/values"
)

// Reconciler reconciles the resources of one kind.
type Reconciler struct {
	client.Client
	// Live reads from the API server itself: Secrets and ConfigMaps are never cached.
	Live client.Reader
	// Type is the kind.
	Type v1alpha2.ProviderType

	Charts *Charts
	// ImageRegistry takes the place of the registry of every image; empty leaves them.
	ImageRegistry string
	Preflight     *preflight.Checker
	CRDs          *crds.Applier
	Releases      *release.Engine
	Health        *health.Tracker
	Upgrades      *Upgrades
	Events        events.EventRecorder
	// Wake brings a resource back after a while.
	Wake health.Wake
	// Corrections are those of all kinds.
	Corrections *corrections
}

// +kubebuilder:rbac:groups=operator.cluster.x-k8s.io,resources=*,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=*,resources=*,verbs=*

// Reconcile brings one provider nearer to what its resource says, and never waits for it to get there.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	// From the API server itself: a status that lags behind our own last write would hide that it must change back.
	provider := r.Type.New()
	if err := r.Live.Get(ctx, req.NamespacedName, provider); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
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
	switch {
	case provider.GetSpec().Suspend:
		return conclude(provider, r.report(ctx, provider))
	case !provider.GetDeletionTimestamp().IsZero():
		return conclude(provider, r.remove(ctx, provider))
	}
	err = r.install(ctx, provider)
	provider.GetStatus().LastHandledReconcileAt = provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation]
	return conclude(provider, err)
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
func (r *Reconciler) setFinalizer(ctx context.Context, provider v1alpha2.Provider, set func(client.Object, string) bool) error {
	before := provider.DeepCopyObject().(v1alpha2.Provider)
	if !set(provider, v1alpha2.Finalizer) {
		return nil
	}
	changed := provider.DeepCopyObject().(v1alpha2.Provider) // the answer must not undo what the status has become
	err := r.Patch(ctx, changed, client.MergeFrom(before), client.FieldOwner(v1alpha2.FieldOwner))
	provider.SetResourceVersion(changed.GetResourceVersion())
	return client.IgnoreNotFound(err)
}

// requested says whether a person asks to look at everything anew, at once.
func requested(provider v1alpha2.Provider) bool {
	return provider.GetAnnotations()[v1alpha2.ReconcileRequestAnnotation] != provider.GetStatus().LastHandledReconcileAt
}

// install is the whole way from a resource to a healthy release. Each step returns what the next needs, or why it goes no
// further; all steps are cheap when nothing they depend on has changed.
func (r *Reconciler) install(ctx context.Context, provider v1alpha2.Provider) error {
	if err := r.Preflight.Identity(ctx, provider); err != nil {
		return err
	}
	if to := releaseSpec(provider.GetSpec()).RollbackTo; to != nil {
		return r.rollBackTo(ctx, provider, *to)
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
	if err := errors.Join(r.applyCRDs(ctx, provider, chart), checked); err != nil {
		return err
	}
	g, err := r.installGoal(desired)
	if err != nil {
		return err
	}
	err = r.reach(ctx, provider, g, func() error { return r.crdsServed(ctx, chart) })
	r.Upgrades.report(ctx, provider)
	return err
}

// rollBackTo returns to the revision that the resource names.
func (r *Reconciler) rollBackTo(ctx context.Context, provider v1alpha2.Provider, revision int64) error {
	return r.reach(ctx, provider, r.rollbackGoal(provider, int(revision)), func() error { return nil })
}

// chart resolves the version and finds its chart. The version is pinned in status, so that a range floats only when the spec
// changes, and an empty one is written into the spec.
func (r *Reconciler) chart(ctx context.Context, provider v1alpha2.Provider) (*providerChart, error) {
	from, err := r.Charts.Sources.Source(provider)
	if err != nil {
		return nil, err
	}
	status := provider.GetStatus()
	picked, err := source.Resolve(ctx, from, provider.GetSpec().Version, status.DesiredVersion)
	if err != nil {
		return nil, err
	}
	status.DesiredVersion = picked.Version
	chart, err := r.Charts.find(ctx, provider, from, picked, requested(provider))
	if err != nil {
		return nil, err
	}
	status.Chart = chart.status()
	return chart, r.pinVersion(ctx, provider, picked.Version)
}

// pinVersion writes into the spec what an empty version came to. A version that somebody sets meanwhile is not overwritten.
func (r *Reconciler) pinVersion(ctx context.Context, provider v1alpha2.Provider, version string) error {
	if provider.GetSpec().Version != "" {
		return nil
	}
	changed := provider.DeepCopyObject().(v1alpha2.Provider) // as in setFinalizer
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"version":%q}}`, provider.GetResourceVersion(), version)
	if err := r.Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha2.FieldOwner)); err != nil {
		return fmt.Errorf("write version %s into spec.version: %w", version, err)
	}
	provider.GetSpec().Version = version
	return nil
}

// preflight makes sure that the chart may be installed, before anything is applied.
func (r *Reconciler) preflight(ctx context.Context, provider v1alpha2.Provider, chart *providerChart, variables map[string]string) error {
	status := provider.GetStatus()
	status.MissingVariables = values.Missing(chart.schema.Required, variables)
	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider: provider, Contract: chart.contract(), RequiredKinds: chart.requiredKinds(), MissingVariables: status.MissingVariables,
	})
	if err != nil {
		return err
	}
	status.Contract = nil
	if contract := chart.contract(); contract != "" {
		status.Contract = &contract
	}
	conditions.MarkTrue(provider, v1alpha2.PreflightCheckCondition, v1alpha2.PreflightChecksPassedReason, "All preflight checks passed")
	return nil
}

// applyCRDs applies the CRDs that have changed.
func (r *Reconciler) applyCRDs(ctx context.Context, provider v1alpha2.Provider, chart *providerChart) error {
	sent, err := r.CRDs.Apply(ctx, chart.Chart.CRDs, provider.GetNamespace())
	if err != nil {
		return &installError{err}
	}
	if len(sent) > 0 {
		ctrl.LoggerFrom(ctx).Info("applied CustomResourceDefinitions", "count", len(sent), "version", chart.Chart.Metadata.AppVersion)
	}
	return nil
}

// crdsServed makes sure that the API server serves the CRDs; the watch on them brings the resource back once it does. That
// takes the API server a while, one CRD after the other, and the release is not held up by it: no object of a release is
// of such a kind, as a rule, and its pods take longer to start.
func (r *Reconciler) crdsServed(ctx context.Context, chart *providerChart) error {
	pending, err := r.CRDs.Pending(ctx, chart.Chart.CRDs)
	if err != nil {
		return &installError{err}
	}
	if len(pending) > 0 {
		// The message is the same until all are served: each of dozens would otherwise be a write of its own.
		return &progress{reason: v1alpha2.CRDsNotReadyReason, message: "waiting for the API server to serve the provider's CustomResourceDefinitions"}
	}
	return nil
}

// remove uninstalls the provider. CRDs, the namespace and everybody's objects stay.
func (r *Reconciler) remove(ctx context.Context, provider v1alpha2.Provider) error {
	if !controllerutil.ContainsFinalizer(provider, v1alpha2.Finalizer) {
		return nil
	}
	conditions.MarkFalse(provider, v1alpha2.ReadyCondition, v1alpha2.DeletingReason, "The provider is being removed")
	if err := r.coreLast(ctx); err != nil {
		return err
	}
	name := releaseName(v1alpha2.Label(provider))
	if _, err := r.Releases.Uninstall(ctx, provider.GetNamespace(), name); err != nil {
		return &installError{err}
	}
	if err := r.Charts.Delete(ctx, provider); err != nil {
		return &installError{err}
	}
	r.Upgrades.forget(provider)
	ctrl.LoggerFrom(ctx).Info("uninstalled", "release", name)
	return r.setFinalizer(ctx, provider, controllerutil.RemoveFinalizer)
}

// coreLast keeps core until all other providers are gone: none can work, or be removed in order, without it.
func (r *Reconciler) coreLast(ctx context.Context) error {
	if r.Type != v1alpha2.CoreProviderType {
		return nil
	}
	var others []string
	for _, t := range v1alpha2.ProviderTypes()[1:] {
		list := t.NewList()
		if err := r.List(ctx, list); err != nil {
			return err
		}
		for _, p := range list.GetItems() {
			others = append(others, fmt.Sprintf("%s %s/%s", t, p.GetNamespace(), p.GetName()))
		}
	}
	if len(others) == 0 {
		return nil
	}
	return &progress{reason: v1alpha2.DeletionBlockedReason, message: "core is removed last; delete first: " + strings.Join(others, ", ")}
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
