package health

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/release"
)

// Report is the health of a set of objects.
type Report struct {
	// NotReady are the objects that are not well, one sentence each.
	NotReady []string
	// Failed says that one of them will not become well by itself.
	Failed bool
}

// Healthy says whether all objects are well.
func (r Report) Healthy() bool { return len(r.NotReady) == 0 }

// Message names the objects that are not well, at most three of them.
func (r Report) Message() string {
	const most = 3
	if len(r.NotReady) <= most {
		return strings.Join(r.NotReady, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(r.NotReady[:most], "; "), len(r.NotReady)-most)
}

func (r *Report) add(o release.Object, v verdict) {
	if v.status == status.CurrentStatus {
		return
	}
	r.NotReady = append(r.NotReady, fmt.Sprintf("%s: %s", o, v.message))
	r.Failed = r.Failed || v.status == status.FailedStatus
}

// verdict is what kstatus makes of one object.
type verdict struct {
	status  status.Status
	message string
}

// judge computes an object's verdict. An object that kstatus cannot read counts as not well, with the reason.
func judge(o client.Object) verdict {
	if o.GetDeletionTimestamp() != nil {
		return verdict{status: status.TerminatingStatus, message: "is being deleted"}
	}
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		return verdict{status: status.CurrentStatus}
	case *unstructured.Unstructured:
		result, err := status.Compute(o)
		if err != nil {
			return verdict{status: status.UnknownStatus, message: "its status cannot be read: " + err.Error()}
		}
		return verdict{status: result.Status, message: result.Message}
	default:
		return verdict{status: status.UnknownStatus, message: "its status cannot be read"}
	}
}
