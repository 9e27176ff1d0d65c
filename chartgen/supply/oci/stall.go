package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// errStalled ends a connection on which nothing has moved for too long.
var errStalled = errors.New("nothing has arrived or left for too long")

// stallGuard bounds how long a request may stand still, in either direction. Its whole time is not
// bounded: a large layer takes what it takes.
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
	if err != nil {
		w.timer.Stop()
		err = w.cause(err)

		cancel(nil)

		return nil, err
	}

	w.timer.Stop()
	resp.Body = &receivedBody{ReadCloser: resp.Body, watchdog: w}

	return resp, nil
}

// watchdog ends a request unless it is fed.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// cause tells a request that the watchdog ended from one that failed by itself.
func (w *watchdog) cause(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}

	return err
}

type sentBody struct {
	io.ReadCloser
	*watchdog
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
	return b.ReadCloser.Read(p)
}

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
