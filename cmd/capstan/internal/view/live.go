package view

import (
	"context"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// live reads the objects of a revision from the cluster, restricted to the fields that the revision sets, and returns
// them with what the revision defines. Objects that cannot be read are in neither list.
func (r *Reader) live(
	ctx context.Context, of compared,
) (live, defined []*unstructured.Unstructured, unknown []string, err error) {
	found := make([]*unstructured.Unstructured, len(of.objects))
	errs := make([]error, len(of.objects))

	var group errgroup.Group
	group.SetLimit(objectRequests)

	for i, o := range of.objects {
		group.Go(func() error {
			found[i], errs[i] = r.get(ctx, o)
			return ctx.Err()
		})
	}

	if err := group.Wait(); err != nil {
		return nil, nil, nil, err
	}

	for i, o := range of.objects {
		switch key := object.KeyOf(o); {
		case apierrors.IsNotFound(errs[i]) && storage.IsFinished(of.revision, key):
			// A Job that has completed is not missed.
		case apierrors.IsNotFound(errs[i]):
			defined = append(defined, o)
		case errs[i] != nil:
			unknown = append(unknown, key.String()+": "+errs[i].Error())
		default:
			o = o.DeepCopy()
			cluster.Normalize(o)

			defined = append(defined, o)
			live = append(live, objectdiff.Project(o, found[i]))
		}
	}

	return live, defined, unknown, nil
}

// get reads an object of a release from the cluster.
func (r *Reader) get(ctx context.Context, recorded *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(recorded.GroupVersionKind())

	return live, r.Client.Get(ctx, client.ObjectKeyFromObject(recorded), live)
}
