package providers

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// objectRequests is the maximum number of concurrent requests for objects.
const objectRequests = 16

// providerView is the status of a provider.
type providerView struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Label is clusterctl's.
	Label string `json:"label"`
	// Ready is "Ready", or the reason why the provider is not ready.
	Ready string `json:"ready"`
	// Wanted is spec.version, Version the installed one.
	Wanted   string                  `json:"wanted,omitempty"`
	Version  string                  `json:"version,omitempty"`
	Contract string                  `json:"contract,omitempty"`
	Chart    *v1alpha2.ChartStatus   `json:"chart,omitempty"`
	Release  *v1alpha2.ReleaseStatus `json:"release,omitempty"`
	// Suspended, Paused and RollbackTo are from the spec.
	Suspended  bool   `json:"suspended,omitempty"`
	Paused     bool   `json:"paused,omitempty"`
	RollbackTo *int64 `json:"rollbackTo,omitempty"`
	// Objects of the release.
	Objects    []objectView       `json:"objects,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// objectView is the health of an object, in the terms of kstatus.
type objectView struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Namespace  string        `json:"namespace,omitempty"`
	Name       string        `json:"name"`
	Status     status.Status `json:"status"`
	Message    string        `json:"message,omitempty"`
}

// readView reads the status of a provider. The release and the objects are read from the cluster,
// because the resource's status can be outdated.
func readView(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) (providerView, error) {
	v := newView(p)

	observed, err := cluster.Releases.Observe(ctx, plan.ReleaseKey(p))
	if err != nil {
		return v, err
	}

	newest, exists := observed.Newest()
	if !exists {
		return v, nil
	}

	v.Release = &v1alpha2.ReleaseStatus{
		Name:      observed.Release.Name,
		Namespace: observed.Release.Namespace,
		Revision:  int64(newest.Number),
		Status:    string(newest.Status),
	}

	record, err := cluster.Releases.Read(ctx, observed.Release, newest)
	if errors.As(err, new(*release.CorruptError)) {
		v.Release.Status = "unreadable"
		return v, nil
	}

	if err != nil {
		return v, err
	}

	v.Objects, err = readObjects(ctx, cluster.Client, newest, record.Objects)

	return v, err
}

// newView returns the part of the status that is in the resource.
func newView(p v1alpha2.Provider) providerView {
	spec := p.GetSpec()
	stat := p.GetStatus()

	v := providerView{
		Kind:       string(p.ProviderType()),
		Namespace:  p.GetNamespace(),
		Name:       p.GetName(),
		Label:      v1alpha2.Label(p),
		Ready:      readyReason(p),
		Wanted:     spec.Version,
		Version:    ptr.Deref(stat.InstalledVersion, ""),
		Contract:   ptr.Deref(stat.Contract, ""),
		Chart:      stat.Chart,
		Suspended:  spec.Suspend,
		Paused:     spec.Paused,
		Conditions: stat.Conditions,
	}

	if spec.Release != nil {
		v.RollbackTo = spec.Release.RollbackTo
	}

	return v
}

// readyReason summarizes the condition Ready in one word.
func readyReason(p v1alpha2.Provider) string {
	ready := conditions.Get(p, v1alpha2.ReadyCondition)

	switch {
	case ready == nil:
		return "Unknown"
	case ready.Status == metav1.ConditionTrue:
		return "Ready"
	default:
		return ready.Reason
	}
}

// readObjects reads the objects of a revision and judges their health.
func readObjects(
	ctx context.Context,
	c client.Client,
	revision state.Revision,
	recorded []*unstructured.Unstructured,
) ([]objectView, error) {
	views := make([]objectView, len(recorded))

	var group errgroup.Group
	group.SetLimit(objectRequests)

	for i, o := range recorded {
		group.Go(func() error {
			views[i] = readObject(ctx, c, revision, o)
			return ctx.Err()
		})
	}

	return views, group.Wait()
}

func readObject(
	ctx context.Context, c client.Client, revision state.Revision, recorded *unstructured.Unstructured,
) objectView {
	v := objectView{
		APIVersion: recorded.GetAPIVersion(),
		Kind:       recorded.GetKind(),
		Namespace:  recorded.GetNamespace(),
		Name:       recorded.GetName(),
	}

	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(recorded.GroupVersionKind())

	err := c.Get(ctx, client.ObjectKeyFromObject(recorded), live)

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
