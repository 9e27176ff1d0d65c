package cli

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

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
