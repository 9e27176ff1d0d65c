package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/consistency"
)

// statusWriter writes the status of a resource, and nothing else does: once at the end of a reconcile, and before that
// when a source is asked, or before an action. The status is what the operator remembers, so it is written with an
// optimistic lock: an operator that has read an older one, for example because it was frozen while another one became
// the leader, does not overwrite it, and its actions end there.
type statusWriter struct {
	client client.Client
	// live reads the resource after a conflict.
	live client.Reader
	// version is the newest known version of the resource.
	version string
	// saved is the resource with the status that the API server has.
	saved v1alpha2.Provider
}

// newStatusWriter returns the writer for a resource as it was read.
func newStatusWriter(c client.Client, live client.Reader, provider v1alpha2.Provider) *statusWriter {
	return &statusWriter{client: c, live: live, version: provider.GetResourceVersion(), saved: cloneProvider(provider)}
}

// asks makes the status say that the source of provider is asked, which may take long, if the spec has changed: what a
// resource that is up to date does in the background does not concern its users.
func (w *statusWriter) asks(ctx context.Context, provider v1alpha2.Provider) {
	if w.saved.GetGeneration() != w.saved.GetStatus().ObservedGeneration {
		w.notice(ctx, provider, "Getting the provider from its source", true)
	}
}

// notice makes the status say at once what the reconcile of provider is doing. Unless the provider is usable meanwhile,
// it is not ready. If that cannot be written, it is not said. The status of provider, which the reconcile computes,
// stays.
func (w *statusWriter) notice(ctx context.Context, provider v1alpha2.Provider, message string, usable bool) {
	sent := cloneProvider(w.saved)
	markDoing(sent, message, usable, time.Now())

	// A copy takes the answer: the status that the reconcile ends with is compared with this one.
	answer := cloneProvider(sent)
	if err := w.patch(ctx, w.saved, answer); err != nil {
		ctrl.LoggerFrom(ctx).Info("Cannot write what is being done into the status", "problem", err.Error())
		return
	}

	w.saved = sent

	// The resource itself can be written after that. If its spec has changed meanwhile, the conflict is a true one.
	if answer.GetGeneration() == provider.GetGeneration() {
		provider.SetResourceVersion(answer.GetResourceVersion())
		provider.SetManagedFields(answer.GetManagedFields())
	}
}

// record makes a change of the status at once: before something is done that others must know of, or after something
// has happened, whatever the deadline of the reconcile is.
func (w *statusWriter) record(ctx context.Context, change func(*v1alpha2.ProviderStatus)) error {
	ctx, cancel := consistency.Outcome(ctx)
	defer cancel()

	sent := cloneProvider(w.saved)
	change(sent.GetStatus())

	// A copy takes the answer, as in notice.
	if err := w.patch(ctx, w.saved, cloneProvider(sent)); err != nil {
		return err
	}

	w.saved = sent

	return nil
}

// save writes the status of provider if it has changed, in one request, whatever the deadline of the reconcile is.
func (w *statusWriter) save(ctx context.Context, provider v1alpha2.Provider) error {
	if equality.Semantic.DeepEqual(w.saved.GetStatus(), provider.GetStatus()) {
		return nil
	}

	ctx, cancel := consistency.Outcome(ctx)
	defer cancel()

	return w.patch(ctx, w.saved, provider)
}

// changed notes the version of the resource after another write of this reconcile.
func (w *statusWriter) changed(provider v1alpha2.Provider) {
	if w != nil {
		w.version = provider.GetResourceVersion()
	}
}

// discard gives provider the status that was written last, so that save writes nothing of what was computed since.
func (w *statusWriter) discard(provider v1alpha2.Provider) {
	w.saved.GetStatus().DeepCopyInto(provider.GetStatus())
}

// maxConflicts is how many conflicts in a row patch resolves: each is another write of the resource at the same time.
const maxConflicts = 5

// patch writes the difference between two statuses. It is a conflict if another program has changed the status
// meanwhile, whatever else has changed in the resource.
func (w *statusWriter) patch(ctx context.Context, before, after v1alpha2.Provider) error {
	for conflicts := 0; ; conflicts++ {
		base := cloneProvider(after)
		before.GetStatus().DeepCopyInto(base.GetStatus())
		base.SetResourceVersion(w.version)

		lock := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})

		err := w.client.Status().Patch(ctx, after, lock, client.FieldOwner(v1alpha2.FieldOwner))
		if err == nil {
			w.version = after.GetResourceVersion()
			return nil
		}

		if !apierrors.IsConflict(err) || conflicts == maxConflicts {
			return client.IgnoreNotFound(err)
		}

		found := cloneProvider(after)
		if err := w.live.Get(ctx, client.ObjectKeyFromObject(after), found); err != nil {
			return client.IgnoreNotFound(err)
		}

		if !isStored(before, found) {
			return err
		}

		w.version = found.GetResourceVersion()
	}
}

// isStored reports whether the status of a resource is what the API server has, where times are in whole seconds.
func isStored(status, found v1alpha2.Provider) bool {
	wanted, err := json.Marshal(status.GetStatus())
	stored, err2 := json.Marshal(found.GetStatus())

	return err == nil && err2 == nil && bytes.Equal(wanted, stored)
}

// record makes a change of the status at once, and in the status that the reconcile computes.
func (r *run) record(ctx context.Context, change func(*v1alpha2.ProviderStatus)) error {
	if err := r.status.record(ctx, change); err != nil {
		return err
	}

	change(r.provider.GetStatus())

	return nil
}

// markDoing makes conditions say what a reconcile is doing. Ready stays as it is unless there was none, or the provider
// is not usable meanwhile.
func markDoing(provider v1alpha2.Provider, message string, usable bool, now time.Time) {
	written := &conditions{list: provider.GetConditions(), generation: provider.GetGeneration(), now: now}
	written.remove(v1alpha2.StalledCondition)
	written.markTrue(v1alpha2.ReconcilingCondition, v1alpha2.ProgressingReason, "%s", message)

	if !usable || written.get(v1alpha2.ReadyCondition).Type == "" {
		written.markFalse(v1alpha2.ReadyCondition, v1alpha2.ProgressingReason, "%s", message)
	}

	provider.SetConditions(written.list)
}

func cloneProvider(provider v1alpha2.Provider) v1alpha2.Provider {
	return provider.DeepCopyObject().(v1alpha2.Provider)
}
