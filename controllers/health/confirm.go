package health

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/release"
)

// Confirm judges the objects that have a status as the API server has them now: a watch may not have told yet what an action has just
// changed, and what it told before is no sign that the change went well.
func Confirm(ctx context.Context, live client.Reader, objects []release.Object) (Report, error) {
	var report Report
	for _, o := range objects {
		if withoutStatus[o.GroupKind()] {
			continue
		}
		found := newObject(o.GroupVersionKind)
		err := live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found)
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
