// Package health reports whether the objects of a provider's release are healthy, and which of them
// have changed since they were last verified to match the release. It reads objects from watches, so
// nothing polls or waits for a Deployment: once a provider's objects have been checked, the provider
// is woken when an answer changes.
package health

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// Wake schedules a reconcile of a provider, given its label and the namespace of its release, after
// some time.
type Wake func(provider, namespace string, after time.Duration)

// Access reports whether the operator may list and watch the objects of a kind. It is asked often, and should
// remember answers for a while. The error is a NoKindMatchError if the API server does not serve the kind.
type Access func(ctx context.Context, gvk schema.GroupVersionKind) (bool, error)

// Options of a Tracker.
type Options struct {
	// Cache watches objects. It should select those with the provider label.
	Cache cache.Cache
	// WatchErrors has the errors of Cache; it may be nil.
	WatchErrors *WatchErrors
	// Access reports which kinds may be watched. The others are polled.
	Access Access
	// APIReader reads the pods of unhealthy workloads.
	APIReader client.Reader
	// Wake is called when the health of a provider's object changes, when an object changes that was
	// recorded, and when objects must be polled again.
	Wake Wake
}

// Owner is the release whose objects are checked.
type Owner struct {
	// Provider is the label of the provider, and Release the name of its release in Namespace.
	Provider, Release, Namespace string
	// Reader reads objects that the operator may not watch.
	Reader client.Reader
}

func (o Owner) key() string { return o.Namespace + "/" + o.Provider }

// obstacle returns why an object is not one of the release; empty if it is.
func (o Owner) obstacle(found client.Object) string {
	name := found.GetAnnotations()[v1alpha2.HelmReleaseNameAnnotation]
	namespace := found.GetAnnotations()[v1alpha2.HelmReleaseNamespaceAnnotation]

	switch {
	case name == "":
		return "exists, but does not belong to the release"
	case name != o.Release || namespace != o.Namespace:
		return "belongs to release " + namespace + "/" + name
	}

	return ""
}

// Tracker watches the objects of releases.
type Tracker struct {
	cache       cache.Cache
	watchErrors *WatchErrors
	access      Access
	apiReader   client.Reader
	wake        Wake

	// starting is held while a watch is started, so that each is started once. Neither it nor mu is held
	// during requests.
	starting sync.Mutex

	mu     sync.Mutex
	kinds  map[schema.GroupVersionKind]*kind
	owners map[string]map[schema.GroupVersionKind]bool
	// results are those of the objects as the watches last showed them.
	results map[object.Key]Result
	records map[object.Key]record
	// unhealthySince is when workloads were first seen unhealthy.
	unhealthySince map[object.Key]time.Time
}

// NewTracker returns a tracker.
func NewTracker(options Options) *Tracker {
	return &Tracker{
		cache:          options.Cache,
		watchErrors:    options.WatchErrors,
		access:         options.Access,
		apiReader:      options.APIReader,
		wake:           options.Wake,
		kinds:          map[schema.GroupVersionKind]*kind{},
		owners:         map[string]map[schema.GroupVersionKind]bool{},
		results:        map[object.Key]Result{},
		records:        map[object.Key]record{},
		unhealthySince: map[object.Key]time.Time{},
	}
}

// Check returns the health of the objects of a release as the watches show them. For a workload that
// has been unhealthy for a few seconds, its pods explain why. Pods are not watched, so the provider is
// woken to read them again, less and less often; so it is for objects that may not be watched.
//
// If a kind cannot be watched although that is permitted, the error is a *WatchError, and the report is
// of the other kinds.
func (t *Tracker) Check(ctx context.Context, owner Owner, objects []object.Key) (Report, error) {
	if err := t.Watch(ctx, owner, objects); err != nil {
		return Report{}, err
	}

	known, unsynced := t.withoutUnsynced(ctx, objects)
	polls := false

	var report Report

	for _, o := range known {
		result, err := t.checkObject(ctx, owner, o)
		if err != nil {
			return Report{}, err
		}

		report.Objects = append(report.Objects, ObjectHealth{Object: o, Result: result})
		polls = polls || t.polls(o.GroupVersionKind)
	}

	switch {
	case polls && report.Healthy():
		t.wake(owner.Provider, owner.Namespace, pollTime)
	case polls:
		t.wake(owner.Provider, owner.Namespace, pollUnhealthyTime)
	}

	if unsynced != nil {
		return report, unsynced
	}

	return report, nil
}

func (t *Tracker) checkObject(ctx context.Context, owner Owner, o object.Key) (Result, error) {
	found, stale, err := t.read(ctx, owner, o)

	switch {
	case err != nil:
		return Result{}, err
	case stale && kindsWithoutStatus[o.GroupKind()]:
		// It was recorded, so it exists, and that is enough.
		return Result{Status: status.CurrentStatus}, nil
	case stale:
		return Result{Status: status.InProgressStatus, Message: "has just been applied"}, nil
	case found == nil && t.wasFinished(o):
		return Result{Status: status.CurrentStatus, Finished: true}, nil
	case found == nil:
		return Result{Status: status.NotFoundStatus, Message: "is missing"}, nil
	}

	// What the operator may read of objects of others is not for the users of this provider.
	if obstacle := owner.obstacle(found); obstacle != "" {
		return Result{Status: status.UnknownStatus, Message: obstacle}, nil
	}

	return t.explain(ctx, o, found, Compute(found)), nil
}

// read reads an object from the cache; nil if it does not exist. If the cache does not have the
// recorded version of the object yet, stale is true, and the provider is woken once it does. Objects
// that may not be watched are read from the API server and never stale.
func (t *Tracker) read(ctx context.Context, owner Owner, o object.Key) (found client.Object, stale bool, err error) {
	if t.polls(o.GroupVersionKind) {
		found, err = get(ctx, owner.Reader, o)
		return found, false, err
	}

	found, stale, err = t.readOnce(ctx, owner, o)
	if err != nil || !stale {
		return found, false, err
	}

	t.wakeWhenCurrent(o)

	// The version may have arrived before its event would wake the provider, so read again.
	return t.readOnce(ctx, owner, o)
}

func (t *Tracker) readOnce(
	ctx context.Context, owner Owner, o object.Key,
) (found client.Object, stale bool, err error) {
	found, err = get(ctx, t.cache, o)

	// Objects in namespaces that are not watched are not in the cache.
	if apierrors.IsForbidden(err) {
		found, err = get(ctx, owner.Reader, o)
		return found, false, err
	}

	if err != nil {
		return nil, false, err
	}

	stale, err = t.isStale(ctx, o, found)

	return found, stale, err
}

// get reads an object; nil if it does not exist.
func get(ctx context.Context, reader client.Reader, o object.Key) (client.Object, error) {
	found := newObject(o.GroupVersionKind)

	err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o, err)
	}

	return found, nil
}
