package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is short enough that commands appear to react at once, and costs little.
const pollInterval = 300 * time.Millisecond

// timeoutError means that what a command waits for has not happened in time.
type timeoutError struct {
	cause error
	// pending is what has not happened yet.
	pending string
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s: %s", e.cause, e.pending) }

func (e *timeoutError) Unwrap() error { return e.cause }

// Poll waits until a check returns that nothing is pending any more, or an error for which retries returns false. If
// that takes too long, or the context ends, the error is a *timeoutError.
func Poll(
	ctx context.Context, timeout time.Duration, retries func(error) bool,
	check func(ctx context.Context) (pending string, err error),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()

	last := "there was no answer yet"

	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		pending, err := check(ctx)

		switch {
		case ctx.Err() != nil && err != nil: // the last answer says more than an interrupted request
		case err == nil:
			last = pending
			return pending == "", nil
		case retries(err):
			last = err.Error()
		default:
			return false, err
		}

		return false, nil //nolint:nilerr // it is tried again
	})
	if err != nil && ctx.Err() != nil {
		return &timeoutError{context.Cause(ctx), last}
	}

	return err
}

// Retries returns a function that reports whether a command which waits continues after an error of a request, and
// warns the first time that it does.
func (o *Options) Retries() func(err error) bool {
	var once sync.Once

	return func(err error) bool {
		if !isTemporary(err) {
			return false
		}

		once.Do(func() { o.Warnf("%s; trying again", err) })

		return true
	}
}

// isTemporary reports whether a request that failed with this error may succeed later, such as once the API server has
// restarted.
func isTemporary(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}

	connection := new(net.OpError)
	if errors.As(err, &connection) && connection.Op == "dial" {
		return true
	}

	lost := utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)

	return lost || utilnet.IsTimeout(err) || errors.Is(err, io.ErrUnexpectedEOF)
}
