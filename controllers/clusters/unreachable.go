package clusters

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/capstan-project/capstan/controllers/object"
)

// UnreachableError reports that the API server of spec.kubeConfig does not answer, or not as it should.
type UnreachableError struct {
	// Address of the API server, and why it cannot be reached.
	Address, Reason string
	// Until is when it is asked again.
	Until time.Time
	hint  string
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server %s of spec.kubeConfig cannot be reached: %s; "+
		"correct the kubeconfig or the connection%s", e.Address, e.Reason, e.hint)
}

// withHint returns the error for a resource, with what to do if it is being deleted.
func (e *UnreachableError) withHint(hint string) *UnreachableError {
	hinted := *e
	hinted.hint = hint

	return &hinted
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
