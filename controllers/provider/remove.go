package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/removal"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// maxBlockedRetry is how long a blocked removal waits at most for the next attempt: users' objects are
// not watched.
const maxBlockedRetry = 30 * time.Second

// remove removes the provider of a deleted resource, and then the finalizer. unreached is why its cluster cannot be
// used; nil if it can.
func (r *run) remove(ctx context.Context, unreached error) error {
	defer r.Metrics.TimeStep(r.Type, metrics.StepRemove)()

	if !controllerutil.ContainsFinalizer(r.provider, v1alpha2.Finalizer) {
		return r.removedByOthers(ctx)
	}

	if unreached != nil {
		return r.leave(ctx, unreached)
	}

	attempt := r.removal()
	err := r.removeInstalled(ctx, attempt)
	r.noteFound(attempt.Found)

	if attempt.Uninstalled {
		r.Offers.Forget(r.provider.GetUID())
		r.done.uninstalled = true
	}

	if err != nil {
		return err
	}

	if attempt.Unlisted != nil {
		r.emit(r.provider, releaseKept(fmt.Sprintf("Objects of the release may be left behind: %s", attempt.Unlisted)))
	}

	return r.dropFinalizer(ctx, attempt.Unconfirmed)
}

// leave drops the finalizer if the cluster's kubeconfig is gone for good: nothing was installed, or the namespace is
// being deleted, too. Otherwise a user may create the kubeconfig again. leave waits for a cluster that cannot be
// reached.
func (r *run) leave(ctx context.Context, unreached error) error {
	recorded := release.MayHaveInstalled(r.provider) || release.HasLostStatus(r.provider)

	gone, err := r.kubeConfigGone(ctx)
	if err == nil && gone && recorded {
		gone, err = r.namespaceTerminates(ctx)
	}

	if err != nil {
		return err
	}

	if !gone && !r.expired() {
		return unreached
	}

	if recorded {
		r.reportLeft(ctx, unreached)
	}

	return r.dropFinalizer(ctx, 0)
}

// removeInstalled removes what is installed, as far as the annotations of the resource ask for.
func (r *run) removeInstalled(ctx context.Context, attempt *removal.Removal) error {
	asks := func(annotation string) bool { return v1alpha2.Asks(r.provider, annotation) }
	blocked := func(err error) error { return r.removalFailed(ctx, attempt.Explain(err)) }

	keeps := asks(v1alpha2.KeepInstalledAnnotation)
	begin := attempt.Find

	if keeps {
		begin = attempt.Keep
	}

	if err := blocked(begin(ctx)); err != nil {
		// A resource that has installed nothing, as far as is known, does not wait for a cluster that cannot be read.
		if r.target.Remote && r.expired() && !attempt.Found.Readable {
			return nil
		}

		return err
	}

	if keeps {
		return nil
	}

	found := attempt.Found
	deletesNamespace := asks(v1alpha2.DeleteNamespaceAnnotation) && !found.Terminating

	for _, step := range []struct {
		needed bool
		take   func(context.Context) error
	}{
		{found.Installed && r.Type == v1alpha2.CoreProviderType, attempt.CheckOthers},
		// When the whole namespace goes, nothing can be kept.
		{found.Installed && !found.Terminating && !asks(v1alpha2.DeleteInUseAnnotation), attempt.CheckUse},
		{deletesNamespace, attempt.CheckNamespace},
		{found.Release, attempt.Uninstall},
		// They belong to the owner of the release.
		{asks(v1alpha2.DeleteCRDsAnnotation) && !found.Foreign, attempt.DeleteCRDs},
		{deletesNamespace, attempt.DeleteNamespace},
	} {
		if !step.needed {
			continue
		}

		if err := blocked(step.take(ctx)); err != nil {
			return err
		}
	}

	return nil
}

// removalFailed returns the result of a step of a removal.
func (r *run) removalFailed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}

	if !problem.Is(err, v1alpha2.DeletionBlockedReason, v1alpha2.DeletingReason) {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot remove the provider; the removal is retried")

		err = &problem.Error{
			Reason: v1alpha2.DeletionBlockedReason, Outcome: problem.Waiting, Message: object.Text(err) + r.unreachedHint(),
		}
	}

	blocked := problem.Of(err)
	age := time.Since(r.provider.GetDeletionTimestamp().Time)

	return endWith(because(blocked.Message).of(Result{
		Outcome: outcomes[blocked.Outcome], Reason: blocked.Reason,
		At: time.Now().Add(min(max(age, MinRetry), maxBlockedRetry)),
	}))
}

// removedByOthers returns the result of a resource that only finalizers of others hold.
func (r *run) removedByOthers(ctx context.Context) error {
	if !takeover.PredecessorManages(r.provider) {
		return endWith(r.removing())
	}

	err := takeover.CheckStopped(ctx, r.APIReader, r.provider)
	if problem.Is(err, v1alpha2.OtherOperatorRunningReason) {
		result := r.removing()
		result.At = problem.Of(err).Until

		return endWith(result)
	}

	if err != nil {
		return err
	}

	return endWith(because(takeover.Stuck(r.provider)).of(
		Result{Outcome: Stalled, Reason: v1alpha2.DeletionBlockedReason}))
}

// dropFinalizer removes the finalizer, and that of cluster-api-operator, which removes it itself if it runs. kept is
// the newest revision of a release that stays; 0 if none does.
func (r *run) dropFinalizer(ctx context.Context, kept int) error {
	if kept != 0 {
		r.emit(r.provider, releaseKept(fmt.Sprintf(
			"Release %s is kept: its revision %d is not known to be this resource's; to remove it, run helm uninstall %s -n %s",
			plan.ReleaseKey(r.provider), kept, v1alpha2.ReleaseName(r.provider), r.provider.GetNamespace())))
	}

	if err := r.Inventory.Remove(ctx, r.provider); err != nil {
		return fmt.Errorf("remove the provider from clusterctl's inventory: %w", err)
	}

	remove := controllerutil.RemoveFinalizer

	if takeover.PredecessorManages(r.provider) && takeover.CheckStopped(ctx, r.APIReader, r.provider) == nil {
		remove = func(o client.Object, finalizer string) bool {
			removed := controllerutil.RemoveFinalizer(o, finalizer)
			return takeover.ReleaseFinalizer(o) || removed
		}
	}

	err := r.setFinalizer(ctx, r.provider, remove)
	r.status.changed(r.provider)

	if apierrors.IsConflict(err) {
		changed := v1alpha2.FullName(r.provider) + " was changed while its finalizer was being removed, which is retried"

		return endWith(because(changed).of(
			Result{Outcome: Idle, Reason: v1alpha2.DeletingReason, At: time.Now().Add(conflictRetry)}))
	}

	r.forget(r.provider)

	if err == nil {
		r.Planner.Charts.Collect(ctx, r.provider)
	}

	return first(err, endWith(r.removing()))
}

// removing returns the result of a removal whose remaining work is not Capstan's.
func (r *run) removing() Result {
	return removingResult(v1alpha2.FullName(r.provider), r.provider.GetFinalizers())
}

// unreachedGrace is how long the removal of a provider that was never installed tries to reach its
// cluster, where a release may be that the status does not have.
const unreachedGrace = time.Minute

// noteFound notes what a removal has found, before it may be blocked: the next attempt then knows it.
func (r *run) noteFound(found removal.Found) {
	status := r.provider.GetStatus()

	if found.Newest.Number != 0 && status.Release == nil {
		key := plan.ReleaseKey(r.provider)
		status.Release = &v1alpha2.ReleaseStatus{
			Name: key.Name, Namespace: key.Namespace, ClusterUID: string(r.self.Cluster),
			Revision: found.Newest.Number, Status: found.Newest.Status,
		}
	}

	r.found, r.searched = found.Objects, found.Complete
}

// removal returns the removal of the provider, which has not begun.
func (r *run) removal() *removal.Removal {
	return &removal.Removal{
		Cache:       r.Client,
		Cluster:     r.Clusters.Identity,
		Provider:    r.provider,
		Owner:       r.self,
		Target:      r.target,
		Progress:    r.memory.searching,
		Uninstalled: r.uninstalled(),
	}
}

// expired reports whether the removal of a provider that was never installed, as far as is known, need
// not wait for its cluster any longer.
func (r *run) expired() bool {
	age := time.Since(r.provider.GetDeletionTimestamp().Time)

	known := release.MayHaveInstalled(r.provider) || release.HasLostStatus(r.provider) || r.uninstalled()

	return !known && age > unreachedGrace
}

// uninstalled reports whether an earlier attempt of the removal has uninstalled the release: it has then removed the
// release from the status. The condition alone is also there if the records are gone, and the objects may not be.
func (r *run) uninstalled() bool {
	installed := v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.ProviderInstalledCondition)

	return installed.Reason == v1alpha2.UninstalledReason && !release.MayHaveInstalled(r.provider)
}

// kubeConfigGone reports whether the Secret of spec.kubeConfig does not exist.
func (r *run) kubeConfigGone(ctx context.Context) (bool, error) {
	kubeConfig := r.provider.GetSpec().KubeConfig
	if kubeConfig == nil {
		return false, nil
	}

	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	key := client.ObjectKey{Namespace: r.provider.GetNamespace(), Name: kubeConfig.SecretRef.Name}
	err := r.APIReader.Get(ctx, key, secret)

	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// namespaceTerminates reports whether the namespace of the resource is being deleted.
func (r *run) namespaceTerminates(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: r.provider.GetNamespace()}, namespace); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}

	return !namespace.DeletionTimestamp.IsZero(), nil
}

// reportLeft reports that the release stays in a cluster that cannot be reached. No event can be created
// in a namespace that is being deleted, so it is one about the namespace, in the namespace default.
func (r *run) reportLeft(ctx context.Context, cause error) {
	message := leftMessage(r.provider, cause)
	ctrl.LoggerFrom(ctx).Info("Kept a release in a cluster that cannot be reached", "problem", message)

	namespace := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: r.provider.GetNamespace()}
	r.emit(namespace, releaseKept(message))
}

// leftMessage describes the release that stays in a cluster that cannot be reached.
func leftMessage(provider v1alpha2.Provider, cause error) string {
	return fmt.Sprintf("%s was deleted, and what it installed as release %s was kept in its cluster: %s",
		v1alpha2.FullName(provider), plan.ReleaseKey(provider), cause)
}

// unreachedHint completes the message about a removal that failed in a remote cluster.
func (r *run) unreachedHint() string {
	if !r.target.Remote {
		return ""
	}

	return fmt.Sprintf(
		"; if that cluster no longer exists, remove the finalizer %s from this resource", v1alpha2.Finalizer)
}
