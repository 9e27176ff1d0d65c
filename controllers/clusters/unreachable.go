package clusters

import (
	"errors"
	"fmt"
	"net/url"
	"time"

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

// The shortest and the longest time between two attempts to reach an API server.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// retryAfter returns how long an API server that did not answer several times is not asked again.
func retryAfter(failures int) time.Duration {
	wait := minRetry
	for range failures - 1 {
		wait = min(2*wait, maxRetry)
	}

	return wait
}
