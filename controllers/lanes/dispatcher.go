// Package lanes keeps the workers of a controller free from resources that may wait for something
// that a user chose: a remote cluster, or a server that components are fetched from. Each of these
// runs in a lane, with few workers of its own; all other resources run on the controller's workers.
package lanes

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// workersPerLane is how many resources of a lane are reconciled at a time.
	workersPerLane = 2
	// maxActive is how many resources of all lanes are reconciled at a time, to limit the memory that
	// this takes, and maxActiveTime how long one counts: after that it is waiting for something.
	maxActive     = 16
	maxActiveTime = 5 * time.Second
)

// Options of a Dispatcher.
type Options struct {
	// Kind of the resources, for messages.
	Kind string
	// Workers is how many resources the controller reconciles at a time, outside of lanes.
	Workers int
	// Lane returns the lane of a resource; empty for the controller's workers.
	Lane func(context.Context, reconcile.Request) string
	// RateLimiter delays failed reconciles of lanes.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Observe is called with the number of lanes and of waiting resources when they change; it may be
	// nil.
	Observe func(lanes, waiting int)
}

// Dispatcher is the Reconciler of a controller. It passes each resource on to the actual one: at once,
// or in a lane. One resource is never reconciled twice at the same time, even if it changes lanes.
//
// It is also a Runnable, which ends when the lanes are empty after the manager was stopped.
type Dispatcher struct {
	reconciler reconcile.Reconciler
	options    Options

	// ctx ends with the manager: the work of lanes outlives Reconcile.
	ctx     context.Context //nolint:containedctx // see above
	stop    context.CancelFunc
	workers sync.WaitGroup
	active  chan struct{}

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	lanes   map[string]*lane
	waiting map[reconcile.Request]task
	running map[reconcile.Request]*run
}

// lane is a queue with its own workers, which exist only while there is work.
type lane struct {
	queue   []reconcile.Request
	workers int
}

// task is a resource that waits in a lane.
type task struct {
	lane string
	// ctx has the logger of the Reconcile that put it there.
	ctx context.Context //nolint:containedctx // see above
}

// run is a reconcile that is running.
type run struct {
	since time.Time
	// inLane is false for the controller's own workers.
	inLane bool
	// again means that the resource was enqueued meanwhile.
	again bool
}

// New returns a dispatcher to a reconciler.
func New(reconciler reconcile.Reconciler, options Options) *Dispatcher {
	ctx, stop := context.WithCancel(context.Background())

	return &Dispatcher{
		reconciler: reconciler,
		options:    options,
		ctx:        ctx,
		stop:       stop,
		active:     make(chan struct{}, maxActive),
		lanes:      map[string]*lane{},
		waiting:    map[reconcile.Request]task{},
		running:    map[reconcile.Request]*run{},
	}
}

// Source registers the controller's queue, to which resources return from lanes, once it runs.
func (d *Dispatcher) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		d.mu.Lock()
		defer d.mu.Unlock()

		d.queue = queue

		return nil
	})
}

// Start waits until ctx ends and until nothing is running in lanes.
func (d *Dispatcher) Start(ctx context.Context) error {
	<-ctx.Done()

	// No worker starts after this.
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()

	d.workers.Wait()

	return nil
}

// Reconcile reconciles a resource, or puts it into its lane.
func (d *Dispatcher) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	name := d.options.Lane(ctx, req)

	d.mu.Lock()

	if running := d.running[req]; running != nil {
		running.again = true
		d.mu.Unlock()

		return ctrl.Result{}, nil
	}

	if name != "" {
		defer d.mu.Unlock()
		defer d.observe()

		// The controller's context ends with this call.
		d.enqueue(req, task{lane: name, ctx: context.WithoutCancel(ctx)})

		return ctrl.Result{}, nil
	}

	// It may be waiting in a lane that it has left.
	delete(d.waiting, req)
	d.running[req] = &run{since: time.Now()}
	d.mu.Unlock()

	defer d.finish(req)

	return d.reconciler.Reconcile(ctx, req)
}

// enqueue puts a resource into a lane. d.mu must be held.
func (d *Dispatcher) enqueue(req reconcile.Request, t task) {
	if d.waiting[req].lane == t.lane {
		return
	}

	d.waiting[req] = t

	l := d.lanes[t.lane]
	if l == nil {
		l = &lane{}
		d.lanes[t.lane] = l
	}

	l.queue = append(l.queue, req)

	if l.workers < workersPerLane && d.ctx.Err() == nil {
		l.workers++
		d.workers.Add(1)

		go d.work(t.lane, l)
	}
}

// work reconciles the resources of a lane until there are none.
func (d *Dispatcher) work(name string, l *lane) {
	defer d.workers.Done()

	for {
		req, ctx, ok := d.next(name, l)
		if !ok {
			return
		}

		leave := d.enter()

		d.reconcile(ctx, req)
		leave()
	}
}

// enter waits until few enough resources are reconciled in all lanes, and returns the function that
// makes room for the next one. That also happens by itself after some time.
func (d *Dispatcher) enter() (leave func()) {
	select {
	case d.active <- struct{}{}:
	case <-d.ctx.Done():
		return func() {}
	}

	leave = sync.OnceFunc(func() { <-d.active })
	time.AfterFunc(maxActiveTime, leave)

	return leave
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
		d.running[req] = &run{since: time.Now(), inLane: true}

		return req, t.ctx, true
	}

	l.workers--
	if l.workers == 0 && len(l.queue) == 0 {
		delete(d.lanes, name)
	}

	return reconcile.Request{}, nil, false
}

// reconcile reconciles a resource of a lane, and enqueues it again as its result says.
func (d *Dispatcher) reconcile(values context.Context, req reconcile.Request) {
	ctx, cancel := context.WithCancel(values)
	defer cancel()

	unlink := context.AfterFunc(d.ctx, cancel)
	defer unlink()

	result, err := d.recovered(ctx, req)

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

// finish notes that a reconcile has ended, and enqueues the resource if that was asked for meanwhile.
func (d *Dispatcher) finish(req reconcile.Request) {
	d.mu.Lock()
	again := d.running[req].again
	delete(d.running, req)
	d.mu.Unlock()

	if again {
		d.queue.Add(req)
	}
}

// observe reports the numbers of lanes and of resources that wait in them. d.mu must be held.
func (d *Dispatcher) observe() {
	if d.options.Observe != nil {
		d.options.Observe(len(d.lanes), len(d.waiting))
	}
}
