// Package health tells whether the objects of a provider's release are well. It reads them from watches, so nobody ever
// waits for a Deployment: whoever asked once is woken when an answer changes.
package health

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
)

// releaseNamespaceAnnotation is put by Helm on every object of a release.
const releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"

// Tracker watches the kinds that releases consist of.
type Tracker struct {
	cache cache.Cache
	wake  func(provider, namespace string)

	mu       sync.Mutex
	watched  map[schema.GroupVersionKind]bool
	verdicts map[release.Object]verdict
}

// NewTracker makes a tracker on a cache of its own, which should select objects with the provider label. wake is called, from
// the watches, with a provider's label and its release's namespace when the health of one of its objects has changed.
func NewTracker(cache cache.Cache, wake func(provider, namespace string)) *Tracker {
	return &Tracker{cache: cache, wake: wake, watched: map[schema.GroupVersionKind]bool{}, verdicts: map[release.Object]verdict{}}
}

// Watch begins to watch the kinds of the objects that are not watched yet. It does not wait for what they hold.
func (t *Tracker) Watch(ctx context.Context, objects []release.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range objects {
		if t.watched[o.GroupVersionKind] {
			continue
		}
		informer, err := t.cache.GetInformer(ctx, newObject(o.GroupVersionKind), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s objects: %w", o.Kind, err)
		}
		if _, err := informer.AddEventHandler(t.handler(o.GroupVersionKind)); err != nil {
			return fmt.Errorf("watch %s objects: %w", o.Kind, err)
		}
		t.watched[o.GroupVersionKind] = true
	}
	return nil
}

// Check reads the objects from the watches and judges them.
func (t *Tracker) Check(ctx context.Context, objects []release.Object) (Report, error) {
	if err := t.Watch(ctx, objects); err != nil {
		return Report{}, err
	}
	var report Report
	for _, o := range objects {
		found := newObject(o.GroupVersionKind)
		err := t.cache.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found)
		switch {
		case apierrors.IsNotFound(err):
			report.add(o, verdict{status: status.NotFoundStatus, message: "is missing"})
		case err != nil:
			return Report{}, fmt.Errorf("read %s: %w", o, err)
		default:
			report.add(o, judge(found))
		}
	}
	return report, nil
}

// handler wakes the provider of an object whose verdict has changed.
func (t *Tracker) handler(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
	seen := func(obj any, gone bool) {
		if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		o, ok := obj.(client.Object)
		if !ok {
			return
		}
		if t.changed(release.Object{GroupVersionKind: gvk, Namespace: o.GetNamespace(), Name: o.GetName()}, o, gone) {
			t.wake(o.GetLabels()[v1alpha2.ClusterctlProviderLabel], o.GetAnnotations()[releaseNamespaceAnnotation])
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen(obj, false) },
		UpdateFunc: func(_, obj any) { seen(obj, false) },
		DeleteFunc: func(obj any) { seen(obj, true) },
	}
}

// changed remembers the object's verdict and says whether it is a new one.
func (t *Tracker) changed(name release.Object, o client.Object, gone bool) bool {
	now := verdict{status: status.NotFoundStatus}
	if !gone {
		now = judge(o)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.verdicts[name]
	if gone {
		delete(t.verdicts, name)
		return known
	}
	t.verdicts[name] = now
	return !known || before != now
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
