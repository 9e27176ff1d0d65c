package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// objectRequests is the maximum number of concurrent requests for objects.
const objectRequests = 16

// Releases reads Helm's records. *release.Engine implements it.
type Releases interface {
	Observe(ctx context.Context, release types.NamespacedName) (state.History, error)
	Read(ctx context.Context, release types.NamespacedName, revision state.Revision) (*release.Record, error)
}

// Reader reads facts from a cluster.
type Reader struct {
	// Client reads objects from the API server, not from a cache.
	Client   client.Reader
	Releases Releases
}

// Provider reads the status of a provider. The release and the objects are read from the cluster, because the
// resource's status can be outdated.
func (r *Reader) Provider(ctx context.Context, p v1alpha2.Provider) (Provider, error) {
	v, _, err := r.provider(ctx, p)
	return v, err
}

// Detailed reads the status of a provider with its details.
func (r *Reader) Detailed(ctx context.Context, p v1alpha2.Provider) (Provider, error) {
	v, recorded, err := r.provider(ctx, p)
	if err != nil {
		return v, err
	}

	v.Details = r.details(ctx, p, recorded)

	return v, ctx.Err()
}

// provider also returns the objects of the newest revision.
func (r *Reader) provider(ctx context.Context, p v1alpha2.Provider) (Provider, []*unstructured.Unstructured, error) {
	v := NewProvider(p)

	if v.Remote {
		return v, nil, nil
	}

	observed, err := r.Observe(ctx, p)
	if apierrors.IsForbidden(err) {
		return r.fromStatus(ctx, p, v)
	}

	v.Release = nil

	if err != nil {
		return v, nil, err
	}

	newest, exists := observed.Newest()
	if !exists {
		return v, nil, nil
	}

	v.Release = &v1alpha2.ReleaseStatus{
		Name:      observed.Release.Name,
		Namespace: observed.Release.Namespace,
		Revision:  newest.Number,
		Status:    newest.Status,
	}

	record, err := r.Releases.Read(ctx, observed.Release, newest)

	switch {
	case apierrors.IsForbidden(err):
		return r.fromStatus(ctx, p, v)
	case errors.As(err, new(*storage.CorruptError)):
		v.Release.Status = "unreadable"
		return v, nil, nil
	case err != nil:
		return v, nil, err
	}

	_, err = r.objects(ctx, &v, newest, record.Objects)

	return v, record.Objects, err
}

// fromStatus completes the status for users who may not read Helm's records: the resource names the objects.
func (r *Reader) fromStatus(
	ctx context.Context, p v1alpha2.Provider, v Provider,
) (Provider, []*unstructured.Unstructured, error) {
	var newest state.Revision
	if history := p.GetStatus().History; len(history) > 0 {
		newest.ReleaseRevision = history[0]
	}

	keys := object.KeysOfInventory(p.GetStatus().Objects)
	named := make([]*unstructured.Unstructured, 0, len(keys))

	for _, key := range keys {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(key.GroupVersionKind)
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)

		named = append(named, o)
	}

	live, err := r.objects(ctx, &v, newest, named)

	return v, live, err
}

// Observe reads the history of a provider's release, completed by the status of the resource.
func (r *Reader) Observe(ctx context.Context, p v1alpha2.Provider) (state.History, error) {
	observed, err := r.Releases.Observe(ctx, plan.ReleaseKey(p))

	return observed.Show(p.GetStatus()), err
}

// objects reads the objects of a revision, and adds their health to the view. Kinds that the user may not read are
// named there. It returns the objects that exist.
func (r *Reader) objects(
	ctx context.Context, v *Provider, revision state.Revision, recorded []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	views := make([]*Object, len(recorded))
	live := make([]*unstructured.Unstructured, len(recorded))

	var group errgroup.Group
	group.SetLimit(objectRequests)

	for i, o := range recorded {
		group.Go(func() error {
			views[i], live[i] = r.object(ctx, revision, o)
			return ctx.Err()
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	for i, o := range views {
		if o != nil {
			v.Objects = append(v.Objects, *o)
		} else {
			v.Unread = append(v.Unread, recorded[i].GetKind())
		}
	}

	slices.Sort(v.Unread)
	v.Unread = slices.Compact(v.Unread)

	return slices.DeleteFunc(live, func(o *unstructured.Unstructured) bool { return o == nil }), nil
}

// object reads an object and judges its health; nil if the user may not read it. The object itself is nil if it cannot
// be read.
func (r *Reader) object(
	ctx context.Context, revision state.Revision, recorded *unstructured.Unstructured,
) (*Object, *unstructured.Unstructured) {
	v := &Object{
		APIVersion: recorded.GetAPIVersion(),
		Kind:       recorded.GetKind(),
		Namespace:  recorded.GetNamespace(),
		Name:       recorded.GetName(),
	}

	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(recorded.GroupVersionKind())

	err := r.Client.Get(ctx, client.ObjectKeyFromObject(recorded), live)

	switch {
	case err == nil:
		result := health.Compute(live)
		v.Status = result.Status
		v.Message = result.Message

		return v, live
	case apierrors.IsForbidden(err):
		return nil, nil
	case apierrors.IsNotFound(err) && storage.IsFinished(revision, object.KeyOf(recorded)):
		v.Status = status.CurrentStatus
		v.Message = "has completed"
	case apierrors.IsNotFound(err):
		v.Status = status.NotFoundStatus
		v.Message = "does not exist"
	default:
		v.Status = status.UnknownStatus
		v.Message = err.Error()
	}

	return v, nil
}

// History reads the revisions of a provider's release, oldest first. That of a release in another cluster, and for
// users who may not read Helm's records, is the one in the status of the resource.
func (r *Reader) History(ctx context.Context, p v1alpha2.Provider) ([]Revision, error) {
	if p.GetSpec().KubeConfig != nil {
		return RecordedHistory(p), nil
	}

	observed, err := r.Observe(ctx, p)
	records := make([]*release.Record, len(observed.Revisions))

	for i, revision := range observed.Revisions {
		if err == nil {
			records[i], err = r.record(ctx, observed, revision)
		}
	}

	switch {
	case apierrors.IsForbidden(err):
		return RecordedHistory(p), nil
	case err != nil:
		return nil, err
	}

	return NewHistory(observed.Revisions, records), nil
}

// record reads the record of a revision. If it cannot be read, its description is the reason.
func (r *Reader) record(ctx context.Context, observed state.History, revision state.Revision) (*release.Record, error) {
	record, err := r.Releases.Read(ctx, observed.Release, revision)

	corrupt := new(storage.CorruptError)

	switch {
	case errors.As(err, &corrupt):
		return &release.Record{Description: "The record cannot be read: " + corrupt.Reason}, nil
	case errors.Is(err, storage.ErrChanged):
		return &release.Record{Description: "The record was just removed"}, nil
	case err != nil:
		return nil, fmt.Errorf("revision %d: %w", revision.Number, err)
	}

	return record, nil
}
