package view

import (
	"context"
	"errors"
	"fmt"

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
func (r *Reader) provider(
	ctx context.Context, p v1alpha2.Provider,
) (Provider, []*unstructured.Unstructured, error) {
	v := NewProvider(p)

	if v.Remote {
		return v, nil, nil
	}

	v.Release = nil

	observed, err := r.observe(ctx, p)
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
	if errors.As(err, new(*storage.CorruptError)) {
		v.Release.Status = "unreadable"
		return v, nil, nil
	}

	if err != nil {
		return v, nil, err
	}

	v.Objects, err = r.objects(ctx, newest, record.Objects)

	return v, record.Objects, err
}

// observe reads the history of a provider's release, completed by the status of the resource.
func (r *Reader) observe(ctx context.Context, p v1alpha2.Provider) (state.History, error) {
	observed, err := r.Releases.Observe(ctx, plan.ReleaseKey(p))

	return observed.Show(p.GetStatus()), err
}

// objects reads the objects of a revision and judges their health.
func (r *Reader) objects(
	ctx context.Context, revision state.Revision, recorded []*unstructured.Unstructured,
) ([]Object, error) {
	views := make([]Object, len(recorded))

	var group errgroup.Group
	group.SetLimit(objectRequests)

	for i, o := range recorded {
		group.Go(func() error {
			views[i] = r.object(ctx, revision, o)
			return ctx.Err()
		})
	}

	return views, group.Wait()
}

func (r *Reader) object(ctx context.Context, revision state.Revision, recorded *unstructured.Unstructured) Object {
	v := Object{
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

	return v
}

// History reads the revisions of a provider's release, oldest first. That of a release in another cluster is the one
// in the status of the resource.
func (r *Reader) History(ctx context.Context, p v1alpha2.Provider) ([]Revision, error) {
	if p.GetSpec().KubeConfig != nil {
		return RecordedHistory(p), nil
	}

	observed, err := r.observe(ctx, p)
	if err != nil {
		return nil, err
	}

	views := make([]Revision, len(observed.Revisions))

	for i, revision := range observed.Revisions { // newest first
		record, err := r.record(ctx, observed, revision)
		if err != nil {
			return nil, err
		}

		views[len(views)-1-i] = NewRevision(revision, record)
	}

	return views, nil
}

// record reads the record of a revision. If it cannot be read, its description is the reason.
func (r *Reader) record(
	ctx context.Context, observed state.History, revision state.Revision,
) (*release.Record, error) {
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
