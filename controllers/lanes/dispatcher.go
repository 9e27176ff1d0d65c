// Package lanes keeps the workers of a controller free from resources that may wait for something
// that a user chose: a remote cluster, or a server that components are fetched from. Each of these
// runs in a lane, with few workers of its own; all other resources run on the controller's workers.
package lanes

import (
	"context"
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
	// RateLimiter delays failed reconciles that the controller does not wait for.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Observe is called with the number of lanes and of waiting resources when they change; it may be
	// nil.
	Observe func(lanes, waiting int)
}

// Dispatcher is the Reconciler of a controller. It passes each resource on to the actual one: at once,
// or in a lane. One resource is never reconciled twice at the same time, even if it changes lanes.
//
// It is also a Runnable, which ends when nothing is running any more after the manager was stopped.
type Dispatcher struct {
	reconciler reconcile.Reconciler
	options    Options

	// ctx ends with the manager: reconciles may outlive Reconcile.
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

// Start waits until ctx ends and until nothing is running.
func (d *Dispatcher) Start(ctx context.Context) error {
	<-ctx.Done()

	// Nothing starts after this.
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

	if d.ctx.Err() != nil {
		d.mu.Unlock()
		return ctrl.Result{}, nil
	}

	// It may be waiting in a lane that it has left.
	delete(d.waiting, req)
	d.running[req] = &run{since: time.Now(), onWorker: true}
	d.workers.Add(1)
	d.mu.Unlock()

	return d.onWorker(ctx, req)
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

// observe reports the numbers of lanes and of resources that wait in them. d.mu must be held.
func (d *Dispatcher) observe() {
	if d.options.Observe != nil {
		d.options.Observe(len(d.lanes), len(d.waiting))
	}
}
