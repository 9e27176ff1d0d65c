package lanes

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// run is a reconcile that is running.
type run struct {
	since time.Time
	// onWorker is set while a worker of the controller waits for it.
	onWorker bool
	// again means that the resource was enqueued meanwhile.
	again bool
}

// onWorker reconciles a resource on a worker of the controller.
func (d *Dispatcher) onWorker(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	defer d.workers.Done()

	result, err := d.run(ctx, req)
	d.finish(req)

	return result, err
}

// work reconciles the resources of a lane until there are none.
func (d *Dispatcher) work(name string, l *lane) {
	defer d.workers.Done()

	for {
		req, values, ok := d.next(name, l)
		if !ok {
			return
		}

		exit := d.enter()
		result, err := d.run(values, req)

		exit()
		d.settle(values, req, result, err)
	}
}

// enter waits until few enough resources are reconciled in all lanes, and returns the function that
// makes room for the next one. That also happens by itself after some time.
func (d *Dispatcher) enter() (exit func()) {
	select {
	case d.active <- struct{}{}:
	case <-d.ctx.Done():
		return func() {}
	}

	exit = sync.OnceFunc(func() { <-d.active })
	time.AfterFunc(maxActiveTime, exit)

	return exit
}

// next takes a resource from a lane, and notes that it is running. If there is none, or the manager has
// stopped, the worker is gone.
func (d *Dispatcher) next(name string, l *lane) (reconcile.Request, context.Context, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.observe()

	for len(l.queue) > 0 && d.ctx.Err() == nil {
		req := l.queue[0]
		l.queue = l.queue[1:]

		// It may have changed lanes.
		t, waits := d.waiting[req]
		if !waits || t.lane != name {
			continue
		}

		delete(d.waiting, req)
		d.running[req] = &run{since: time.Now()}

		return req, t.ctx, true
	}

	l.workers--
	if l.workers == 0 && len(l.queue) == 0 {
		delete(d.lanes, name)
	}

	return reconcile.Request{}, nil, false
}

// run reconciles a resource until it ends, or until the manager does.
func (d *Dispatcher) run(values context.Context, req reconcile.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithCancel(values)
	defer cancel()

	unlink := context.AfterFunc(d.ctx, cancel)
	defer unlink()

	return d.recovered(ctx, req)
}

// recovered reconciles a resource, and returns a panic as an error.
func (d *Dispatcher) recovered(ctx context.Context, req reconcile.Request) (result ctrl.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			ctrl.LoggerFrom(ctx).Info("Observed a panic", "panic", fmt.Sprint(r), "stacktrace", string(debug.Stack()))
			err = fmt.Errorf("panic: %v [recovered]", r)
		}
	}()

	return d.reconciler.Reconcile(ctx, req)
}

// settle ends a reconcile that the controller does not wait for, and enqueues its resource again as the result
// says.
func (d *Dispatcher) settle(ctx context.Context, req reconcile.Request, result ctrl.Result, err error) {
	// It is not running any more before it is enqueued, or that would be taken for a repetition.
	d.finish(req)

	switch {
	case errors.Is(err, reconcile.TerminalError(nil)):
		ctrl.LoggerFrom(ctx).Error(err, "Reconciler error")
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Reconciler error")
		d.queue.AddAfter(req, d.options.RateLimiter.When(req))
	default:
		d.options.RateLimiter.Forget(req)

		if result.RequeueAfter > 0 {
			d.queue.AddAfter(req, result.RequeueAfter)
		}
	}
}

// finish notes that a reconcile has ended, and enqueues the resource if that was asked for meanwhile.
func (d *Dispatcher) finish(req reconcile.Request) {
	d.mu.Lock()

	ended := d.running[req]
	delete(d.running, req)
	d.mu.Unlock()

	if ended.again {
		d.queue.Add(req)
	}
}
