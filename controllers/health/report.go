package health

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/object"
)

// Report is the health of a set of objects.
type Report struct {
	// Objects, in the order in which they were asked for.
	Objects []ObjectHealth
	// Failed says that one of them will not become well by itself.
	Failed bool
}

// ObjectHealth is the health of one object.
type ObjectHealth struct {
	Object object.Key
	Status status.Status
	// Message says why the object is not well.
	Message string
}

// Healthy reports whether the object is well.
func (h ObjectHealth) Healthy() bool { return h.Status == status.CurrentStatus }

func (h ObjectHealth) String() string { return fmt.Sprintf("%s: %s", h.Object, h.Message) }

// Healthy reports whether all objects are well.
func (r Report) Healthy() bool { return len(r.NotReady()) == 0 }

// NotReady are the objects that are not well.
func (r Report) NotReady() []ObjectHealth {
	var bad []ObjectHealth

	for _, h := range r.Objects {
		if !h.Healthy() {
			bad = append(bad, h)
		}
	}

	return bad
}

// Message names the objects that are not well and says why, of three of them at most.
func (r Report) Message() string {
	const most = 3

	var parts []string

	for i, h := range r.NotReady() {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(r.NotReady())-most))
			break
		}

		parts = append(parts, h.String())
	}

	return strings.Join(parts, "; ")
}

func (r *Report) add(o object.Key, v verdict) {
	r.Objects = append(r.Objects, ObjectHealth{o, v.status, v.message})
	r.Failed = r.Failed || v.status == status.FailedStatus
}

// verdict is what kstatus makes of one object.
type verdict struct {
	status  status.Status
	message string
}

// judge computes an object's verdict. An object that kstatus cannot read counts as not well, with
// the reason.
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
