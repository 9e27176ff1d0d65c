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

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// Wake schedules a reconcile of a provider, given its label and the namespace of its release, after
// some time.
type Wake func(provider, namespace string, after time.Duration)

// Tracker watches the objects of releases.
type Tracker struct {
	cache     cache.Cache
	apiReader client.Reader
	wake      Wake

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]cache.Informer
	// results are those of the objects as the watches last showed them.
	results map[object.Key]Result
	records map[object.Key]record
	// unhealthySince is when workloads were first seen unhealthy.
	unhealthySince map[object.Key]time.Time
}

// NewTracker returns a tracker that watches objects in a cache, which should select those with the
// provider label. It uses apiReader to read the pods of unhealthy workloads. The watches call wake
// when the health of a provider's object changes, and when an object changes that was recorded.
func NewTracker(objects cache.Cache, apiReader client.Reader, wake Wake) *Tracker {
	return &Tracker{
		cache:          objects,
		apiReader:      apiReader,
		wake:           wake,
		informers:      map[schema.GroupVersionKind]cache.Informer{},
		results:        map[object.Key]Result{},
		records:        map[object.Key]record{},
		unhealthySince: map[object.Key]time.Time{},
	}
}

// Watch starts to watch the kinds of the objects that are not watched yet and that the API server
// serves. It does not wait for their objects.
func (t *Tracker) Watch(ctx context.Context, objects []object.Key) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, o := range objects {
		if t.informers[o.GroupVersionKind] != nil {
			continue
		}

		informer, err := t.cache.GetInformer(ctx, newObject(o.GroupVersionKind), cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) {
			continue // its objects cannot exist: get says so
		}

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

// Check returns the health of objects as the watches show them. For a workload that has been
// unhealthy for a few seconds, its pods explain why. Pods are not watched, so the provider is woken
// to read them again, less and less often.
func (t *Tracker) Check(ctx context.Context, objects []object.Key) (Report, error) {
	if err := t.Watch(ctx, objects); err != nil {
		return Report{}, err
	}

	var report Report

	for _, o := range objects {
		result, err := t.checkObject(ctx, o)
		if err != nil {
			return Report{}, err
		}

		report.Objects = append(report.Objects, ObjectHealth{Object: o, Result: result})
	}

	return report, nil
}

func (t *Tracker) checkObject(ctx context.Context, o object.Key) (Result, error) {
	found, stale, err := t.read(ctx, o)

	switch {
	case err != nil:
		return Result{}, err
	case stale && kindsWithoutStatus[o.GroupKind()]:
		// It was recorded, so it exists, and that is enough.
		return Result{Status: status.CurrentStatus}, nil
	case stale:
		return Result{Status: status.InProgressStatus, Message: "has just been applied"}, nil
	case found == nil:
		return Result{Status: status.NotFoundStatus, Message: "is missing"}, nil
	default:
		return t.explain(ctx, o, found, Compute(found)), nil
	}
}

// read reads an object from the cache; nil if it does not exist. If the cache does not have the
// recorded version of the object yet, stale is true, and the provider is woken once it does.
func (t *Tracker) read(ctx context.Context, o object.Key) (found client.Object, stale bool, err error) {
	found, stale, err = t.readOnce(ctx, o)
	if err != nil || !stale {
		return found, false, err
	}

	t.wakeWhenCurrent(o)

	// The version may have arrived before its event would wake the provider, so read again.
	return t.readOnce(ctx, o)
}

func (t *Tracker) readOnce(ctx context.Context, o object.Key) (found client.Object, stale bool, err error) {
	found, err = t.get(ctx, o)
	if err != nil {
		return nil, false, err
	}

	stale, err = t.isStale(ctx, o, found)

	return found, stale, err
}

// get reads an object from the cache; nil if it is not there.
func (t *Tracker) get(ctx context.Context, o object.Key) (client.Object, error) {
	found := newObject(o.GroupVersionKind)

	err := t.cache.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o, err)
	}

	return found, nil
}
