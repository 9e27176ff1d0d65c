package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errStalled is the error of a connection that transferred nothing for too long.
var errStalled = errors.New("nothing was transferred for too long")

// stallGuard cancels requests that transfer nothing for the timeout, in either direction. There is
// no limit for the whole request: a large layer may take as long as it needs.
type stallGuard struct {
	next    http.RoundTripper
	timeout time.Duration
}

func (g *stallGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watchdog{timeout: g.timeout, cancel: cancel, ctx: ctx}
	w.timer = time.AfterFunc(g.timeout, func() { cancel(errStalled) })

	guarded := req.WithContext(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		guarded.Body = &sentBody{ReadCloser: req.Body, watchdog: w}
	}

	resp, err := g.next.RoundTrip(guarded)

	w.timer.Stop()

	if err != nil {
		err = w.cause(err)

		cancel(nil)

		return nil, err
	}

	resp.Body = &receivedBody{ReadCloser: resp.Body, watchdog: w}

	return resp, nil
}

// watchdog cancels a request unless its timer is reset in time.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// cause returns errStalled if the watchdog canceled the request, otherwise err.
func (w *watchdog) cause(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}

	return err
}

// sentBody resets the timer whenever more of the request's body is sent.
type sentBody struct {
	io.ReadCloser
	*watchdog
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
	return b.ReadCloser.Read(p)
}

// receivedBody runs the timer only while a Read waits for the server: a slow consumer is no stall.
type receivedBody struct {
	io.ReadCloser
	*watchdog
}

func (b *receivedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()

	return n, b.cause(err)
}

func (b *receivedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)

	return err
}
