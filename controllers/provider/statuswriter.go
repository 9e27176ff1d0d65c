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

// noticeDelay is how long something takes before the status says that it is being done.
const noticeDelay = 700 * time.Millisecond

// statusWriter writes the status of a resource, and nothing else does: once at the end of a reconcile, and before that
// if something takes long, such as reading from a source, or before an action. The status is what the operator
// remembers, so it is written with an optimistic lock: an operator that has read an older one, for example because it
// was frozen while another one became the leader, does not overwrite it, and its actions end there.
// A nil statusWriter says nothing.
type statusWriter struct {
	client client.Client
	// live reads the resource after a conflict.
	live client.Reader
	// version is the newest known version of the resource.
	version string
	// saved is the resource with the status that the API server has.
	saved v1alpha2.Provider
	// due is when the next step has to be in the status.
	due    time.Time
	notice *notice
}

// notice is a status that is written when its time has come.
type notice struct {
	timer *time.Timer
	// done is closed after the attempt to write. Until then, only that uses the fields below.
	done    chan struct{}
	sent    v1alpha2.Provider
	answer  v1alpha2.Provider
	failure error
}

// newStatusWriter returns the writer for a resource as it was read.
func newStatusWriter(c client.Client, live client.Reader, provider v1alpha2.Provider) *statusWriter {
	return &statusWriter{
		client: c, live: live, version: provider.GetResourceVersion(), saved: cloneProvider(provider),
		due: time.Now().Add(noticeDelay),
	}
}

// doing makes the status say what is being done, if that takes long and the spec has changed: what a
// resource that is up to date does in the background does not concern its users. It lasts until pause or save.
func (w *statusWriter) doing(ctx context.Context, message string) {
	if w == nil || w.saved.GetGeneration() == w.saved.GetStatus().ObservedGeneration {
		return
	}

	w.stop(ctx)

	n := &notice{done: make(chan struct{}), sent: cloneProvider(w.saved)}
	markDoing(n.sent, message, true, time.Now())

	saved := w.saved
	n.timer = time.AfterFunc(time.Until(w.due), func() {
		defer close(n.done)

		n.answer = cloneProvider(n.sent)
		n.failure = w.patch(ctx, saved, n.answer)
	})
	w.notice = n
}

// waiting makes the status say at once what the reconcile waits for, which is known to take long. The provider
// is not ready until it ends, whatever has changed.
func (w *statusWriter) waiting(ctx context.Context, what string) {
	w.stop(ctx)

	sent := cloneProvider(w.saved)
	markDoing(sent, "waiting for "+what, false, time.Now())

	// A copy takes the answer: the status that the reconcile ends with is compared with this one.
	if err := w.patch(ctx, w.saved, cloneProvider(sent)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot show what the reconcile waits for", "what", what)
		return
	}

	w.saved = sent
}

// record makes a change of the status at once: before something is done that others must know of, or after something
// has happened, whatever the deadline of the reconcile is.
func (w *statusWriter) record(ctx context.Context, change func(*v1alpha2.ProviderStatus)) error {
	w.stop(ctx)

	ctx, cancel := consistency.Outcome(ctx)
	defer cancel()

	sent := cloneProvider(w.saved)
	change(sent.GetStatus())

	// A copy takes the answer, as in waiting.
	if err := w.patch(ctx, w.saved, cloneProvider(sent)); err != nil {
		return err
	}

	w.saved = sent

	return nil
}

// pause ends doing before the resource itself is written, which a status in between would make a conflict.
// The status of provider, which the reconcile computes, stays.
func (w *statusWriter) pause(ctx context.Context, provider v1alpha2.Provider) {
	if w == nil {
		return
	}

	answer := w.stop(ctx)

	// If the spec has changed meanwhile, the conflict is a true one.
	if answer != nil && answer.GetGeneration() == provider.GetGeneration() {
		provider.SetResourceVersion(answer.GetResourceVersion())
		provider.SetManagedFields(answer.GetManagedFields())
	}
}

// save writes the status of provider if it has changed, in one request, whatever the deadline of the reconcile is.
func (w *statusWriter) save(ctx context.Context, provider v1alpha2.Provider) error {
	w.stop(ctx)

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

// stop ends the notice, and returns the answer of the API server; nil if nothing was written.
func (w *statusWriter) stop(ctx context.Context) v1alpha2.Provider {
	n := w.notice
	w.notice = nil

	if n == nil || n.timer.Stop() {
		return nil
	}

	<-n.done

	w.due = time.Now().Add(noticeDelay)

	if n.failure != nil {
		ctrl.LoggerFrom(ctx).Info("Cannot write what is being done into the status", "problem", n.failure.Error())
		return nil
	}

	w.saved = n.sent

	return n.answer
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

// markDoing makes conditions say what a reconcile is doing, or waits for. Ready stays as it is unless there was none,
// or the provider is not ready until this ends.
func markDoing(provider v1alpha2.Provider, message string, ready bool, now time.Time) {
	written := &conditions{list: provider.GetConditions(), generation: provider.GetGeneration(), now: now}
	written.remove(v1alpha2.StalledCondition)
	written.markTrue(v1alpha2.ReconcilingCondition, v1alpha2.ProgressingReason, "%s", message)

	if !ready || written.get(v1alpha2.ReadyCondition).Type == "" {
		written.markFalse(v1alpha2.ReadyCondition, v1alpha2.ProgressingReason, "%s", message)
	}

	provider.SetConditions(written.list)
}

func cloneProvider(provider v1alpha2.Provider) v1alpha2.Provider {
	return provider.DeepCopyObject().(v1alpha2.Provider)
}
