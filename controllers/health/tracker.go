// Package health reports whether the objects of a provider's release are well, and which of them have
// changed since they were last as the release says. It reads both from watches, so nobody ever
// waits for a Deployment or polls: whoever asked once is woken when an answer changes.
package health

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// releaseNamespaceAnnotation is put by Helm on every object of a release.
const releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"

// Wake is called with a provider's label, its release's namespace and how long to wait until then.
type Wake func(provider, namespace string, after time.Duration)

// Tracker watches the kinds that releases consist of.
type Tracker struct {
	cache cache.Cache
	live  client.Reader
	wake  Wake

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]cache.Informer
	verdicts  map[object.Key]verdict
	known     map[object.Key]known
	unwell    map[object.Key]time.Time // since when, of workloads
}

// NewTracker makes a tracker on a cache of its own, which should select objects with the provider
// label; pods are read from live, and only while their workload is not well. wake is called, from
// the watches, when the health of one of a provider's objects has changed, or the object itself
// since it was recorded.
func NewTracker(objects cache.Cache, live client.Reader, wake Wake) *Tracker {
	return &Tracker{
		cache: objects, live: live, wake: wake,
		informers: map[schema.GroupVersionKind]cache.Informer{},
		verdicts:  map[object.Key]verdict{},
		known:     map[object.Key]known{},
		unwell:    map[object.Key]time.Time{},
	}
}

// Watch begins to watch the kinds of the objects that are not watched yet. It does not wait for
// what they hold.
func (t *Tracker) Watch(ctx context.Context, objects []object.Key) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, o := range objects {
		if t.informers[o.GroupVersionKind] != nil {
			continue
		}

		informer, err := t.cache.GetInformer(ctx, newObject(o.GroupVersionKind), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s objects: %w", o.Kind, err)
		}

		if _, err := informer.AddEventHandler(t.handler(o.GroupVersionKind)); err != nil {
			return fmt.Errorf("watch %s objects: %w", o.Kind, err)
		}

		t.informers[o.GroupVersionKind] = informer
	}

	return nil
}

// Check reads the objects from the watches and judges them. Of a workload that has not been well
// for a few seconds, its pods tell why; as no watch does, the provider is woken to look at them
// again, each time later.
func (t *Tracker) Check(ctx context.Context, objects []object.Key) (Report, error) {
	if err := t.Watch(ctx, objects); err != nil {
		return Report{}, err
	}

	var report Report

	for _, o := range objects {
		found, lagging, err := t.look(ctx, o)
		if err != nil {
			return Report{}, err
		}

		switch {
		case lagging && withoutStatus[o.GroupKind()]: // being there is being well, and it is known to be there
			report.add(o, verdict{status: status.CurrentStatus})
		case lagging:
			report.add(o, verdict{status: status.InProgressStatus, message: "has just been applied"})
		case found == nil:
			report.add(o, verdict{status: status.NotFoundStatus, message: "is missing"})
		default:
			report.add(o, t.explain(ctx, o, found, judge(found)))
		}
	}

	return report, nil
}

// look reads an object from the watch; nil if there is none. lagging says that the watch has not
// come to the state yet in which the object was recorded; when it does, the provider is woken.
func (t *Tracker) look(ctx context.Context, o object.Key) (found client.Object, lagging bool, err error) {
	if found, lagging, err = t.readBehind(ctx, o); err != nil || !lagging {
		return found, false, err
	}

	t.await(o)

	return t.readBehind(ctx, o) // it may have come to it before it was waited for
}

// readBehind reads an object from the watch and reports whether that is behind.
func (t *Tracker) readBehind(ctx context.Context, o object.Key) (found client.Object, lagging bool, err error) {
	if found, err = t.read(ctx, o); err != nil {
		return nil, false, err
	}

	lagging, err = t.lags(ctx, o, found)

	return found, lagging, err
}

func (t *Tracker) read(ctx context.Context, o object.Key) (client.Object, error) {
	found := newObject(o.GroupVersionKind)

	err := t.cache.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o, err)
	}

	return found, nil
}

// handler sees to it that nothing is missed: who an object belongs to is asked of its former state
// too.
func (t *Tracker) handler(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
	seen := func(before, now any, gone bool) {
		o, ok := now.(client.Object)
		if !ok {
			return
		}

		name := object.Key{GroupVersionKind: gvk, Namespace: o.GetNamespace(), Name: o.GetName()}
		if !t.changed(name, o, gone) {
			return
		}

		owner := o
		if former, ok := before.(client.Object); ok && former.GetAnnotations()[releaseNamespaceAnnotation] != "" {
			owner = former
		}

		t.wakeOwner(owner, 0)
	}

	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { seen(nil, now, false) },
		UpdateFunc: func(before, now any) { seen(before, now, false) },
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}

			seen(nil, last, true)
		},
	}
}

func (t *Tracker) wakeOwner(o client.Object, after time.Duration) {
	t.wake(o.GetLabels()[v1alpha2.ClusterctlProviderLabel], o.GetAnnotations()[releaseNamespaceAnnotation], after)
}

// changed remembers what was seen of an object and reports whether that is news to its provider.
func (t *Tracker) changed(name object.Key, o client.Object, gone bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	outdated := t.outdated(name, o, gone)

	before, judged := t.verdicts[name]
	if gone {
		delete(t.verdicts, name)
		delete(t.unwell, name)

		return judged || outdated
	}

	now := judge(o)
	t.verdicts[name] = now

	return outdated || !judged || before != now
}

// newObject is what a kind is watched as: its metadata where that says all there is to say.
func newObject(gvk schema.GroupVersionKind) client.Object {
	if withoutStatus[gvk.GroupKind()] {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(gvk)

		return o
	}

	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)

	return o
}

// withoutStatus are the kinds of which being there is being well.
var withoutStatus = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "Service"}:        true,
	{Kind: "ServiceAccount"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                       true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       true,
}
