package reconcile

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/removal"
)

// maxBlockedRetry is how long a blocked removal waits at most for the next attempt: users' objects are
// not watched.
const maxBlockedRetry = 30 * time.Second

// removing is the result of a removal whose remaining work is not Capstan's.
var removing = Result{Outcome: Idle, Reason: v1alpha2.DeletingReason, Message: "The provider is being removed"}

// remove removes the provider of a deleted resource, and then the finalizer.
func (r *run) remove(ctx context.Context) Result {
	if !controllerutil.ContainsFinalizer(r.provider, v1alpha2.Finalizer) {
		return removing
	}

	defer r.Metrics.TimeStep(r.Type, metrics.StepRemove)()

	condition := conditions.GetReason(r.provider, v1alpha2.ProviderInstalledCondition)
	attempt := removal.Removal{
		Cache:       r.Client,
		Provider:    r.provider,
		Target:      r.target,
		Charts:      r.Planner.Charts,
		Uninstalled: condition == v1alpha2.UninstalledReason,
	}
	err := attempt.Run(ctx)

	if attempt.Uninstalled {
		r.Upgrades.Forget(r.provider.GetUID())
		r.uninstalled = true
	}

	if err == nil {
		return r.dropFinalizer(ctx)
	}

	if r.target.Remote && !attempt.Observed && r.givenUp() {
		ctrl.LoggerFrom(ctx).Info("Giving up a cluster in which nothing is known to be installed", "problem", err.Error())
		return r.abandon(ctx)
	}

	blocked := new(removal.BlockedError)
	if !errors.As(err, &blocked) {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot remove the provider; the removal is retried")

		blocked = &removal.BlockedError{Message: err.Error() + r.unreachedHint(), Waiting: true}
	}

	age := time.Since(r.provider.GetDeletionTimestamp().Time)
	next := time.Now().Add(min(max(age, minRetry), maxBlockedRetry))

	outcome := Stalled
	if blocked.Waiting {
		outcome = Waiting
	}

	return Result{Outcome: outcome, Reason: v1alpha2.DeletionBlockedReason, Message: blocked.Message, At: next}
}

// dropFinalizer lets the resource go.
func (r *run) dropFinalizer(ctx context.Context) Result {
	err := r.setFinalizer(ctx, r.provider, controllerutil.RemoveFinalizer)
	if apierrors.IsConflict(err) {
		again := removing
		again.At = time.Now().Add(conflictRetry)

		return again
	}

	r.forget(r.provider)

	return firstOf(failed(err, fetching), removing)
}

// forget drops what the operator remembers of a provider.
func (r *Reconciler) forget(provider v1alpha2.Provider) {
	r.Clusters.Forget(provider)
	r.Planner.Charts.Forget(provider)
	r.Upgrades.Forget(provider.GetUID())
	r.permitted.forget(provider.GetUID())
	r.Metrics.Forget(provider)
}

// forgetGone drops what the operator remembers of a resource that no longer exists: it may have had no
// finalizer, or a user may have removed that.
func (r *Reconciler) forgetGone(name types.NamespacedName) {
	uid, known := r.uids.LoadAndDelete(name)
	if !known {
		return
	}

	provider := r.Type.New()
	provider.SetNamespace(name.Namespace)
	provider.SetName(name.Name)
	provider.SetUID(uid.(types.UID))

	r.forget(provider)
}
