package clusters

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Unreachable returns the problem of an API server of spec.kubeConfig that does not answer, or not as it should: why,
// and when it is asked again.
func Unreachable(address, reason string, until time.Time) *problem.Error {
	return &problem.Error{
		Reason: v1alpha2.ClusterUnreachableReason, Outcome: problem.Waiting, Until: until,
		Message: fmt.Sprintf("the API server %s of spec.kubeConfig cannot be reached: %s; correct the kubeconfig or the "+
			"connection", address, reason),
	}
}

// maxReason limits the reason why a server cannot be reached.
const maxReason = 300

// reasonOf returns why a request failed, without its URL.
func reasonOf(err error) string {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		err = request.Err
	}

	return object.OneLine(err.Error(), maxReason)
}

// newBackoff returns the times between two attempts to reach an API server that does not answer. Each may take a worker
// for connectTimeout.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt, Cap: 2 * time.Minute}
}
