package lanes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/controllers/lanes"
)

// world is a dispatcher with a reconciler that does what a test says.
type world struct {
	*lanes.Dispatcher
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu      sync.Mutex
	lanes   map[string]string // by the name of the resource
	act     map[string]func(context.Context) (reconcile.Result, error)
	calls   map[string]int
	running map[string]int
	most    map[string]int // how many ran at a time, by lane
	twice   bool           // whether one resource ran twice at a time
}

func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)),
		lanes: map[string]string{}, act: map[string]func(context.Context) (reconcile.Result, error){},
		calls: map[string]int{}, running: map[string]int{}, most: map[string]int{},
	}
	t.Cleanup(w.queue.ShutDown)

	w.Dispatcher = lanes.New(reconcile.Func(w.reconcile), lanes.Options{
		Kind:    "CoreProvider",
		Workers: 1,
		Lane: func(_ context.Context, req reconcile.Request) string {
			w.mu.Lock()
			defer w.mu.Unlock()

			return w.lanes[req.Name]
		},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second),
	})

	NewWithT(t).Expect(w.Source().Start(t.Context(), w.queue)).To(Succeed())

	return w
}

func (w *world) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w.mu.Lock()
	lane, act := w.lanes[req.Name], w.act[req.Name]
	w.calls[req.Name]++
	w.running[req.Name]++
	w.twice = w.twice || w.running[req.Name] > 1

	ofLane := 0

	for name, n := range w.running {
		if w.lanes[name] == lane {
			ofLane += n
		}
	}

	w.most[lane] = max(w.most[lane], ofLane)
	w.mu.Unlock()

	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()

		w.running[req.Name]--
	}()

	if act == nil {
		return reconcile.Result{}, nil
	}

	return act(ctx)
}

// serve runs the controller's only worker until the end of the test.
func (w *world) serve() {
	go func() {
		for {
			req, shutdown := w.queue.Get()
			if shutdown {
				return
			}

			_, _ = w.Reconcile(context.Background(), req)
			w.queue.Done(req)
		}
	}()
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// called returns how often a resource was reconciled.
func (w *world) called(name string) func() int {
	return func() int {
		w.mu.Lock()
		defer w.mu.Unlock()

		return w.calls[name]
	}
}

// set puts a resource into a lane, where it does something.
func (w *world) set(name, lane string, act func(context.Context) (reconcile.Result, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.lanes[name], w.act[name] = lane, act
}

// block returns an action that waits until it is released or its context ends.
func block() (act func(context.Context) (reconcile.Result, error), release func()) {
	released := make(chan struct{})

	return func(ctx context.Context) (reconcile.Result, error) {
		select {
		case <-released:
		case <-ctx.Done():
		}

		return reconcile.Result{}, nil
	}, sync.OnceFunc(func() { close(released) })
}

func TestBlockedLaneBlocksNothingElse(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	act, release := block()

	defer release()

	for i := range 20 {
		name := fmt.Sprint("slow-", i)
		w.set(name, "silent", act)
		w.queue.Add(request(name))
	}

	w.set("other", "answering", nil)
	w.queue.Add(request("other"))
	w.queue.Add(request("local"))
	w.serve()

	g.Eventually(w.called("local")).Should(Equal(1))
	g.Eventually(w.called("other")).Should(Equal(1))
	g.Expect(w.Stuck(time.Now().Add(time.Hour), lanes.Patience{All: time.Minute, One: time.Minute})).To(Succeed(),
		"what waits in lanes does not make the operator unready")

	release()

	for i := range 20 {
		g.Eventually(w.called(fmt.Sprint("slow-", i))).Should(Equal(1))
	}

	g.Expect(w.most["silent"]).To(Equal(2))
}

func TestOneResourceNeverRunsTwice(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	act, release := block()

	defer release()

	w.set("a", "one", act)
	w.serve()
	w.queue.Add(request("a"))
	g.Eventually(w.called("a")).Should(Equal(1))

	for _, lane := range []string{"one", "two", ""} {
		w.set("a", lane, act)
		w.queue.Add(request("a"))
		g.Eventually(w.queue.Len).Should(BeZero())
	}

	g.Consistently(w.called("a"), "50ms").Should(Equal(1))
	release()
	g.Eventually(w.called("a")).Should(Equal(2), "it was asked for meanwhile")
	g.Expect(w.twice).To(BeFalse())
}

func TestResourceThatLeavesItsLane(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	act, release := block()

	defer release()

	for _, name := range []string{"first", "second"} {
		w.set(name, "silent", act)
		w.queue.Add(request(name))
	}

	w.serve()
	g.Eventually(w.called("second")).Should(Equal(1))

	w.set("mover", "silent", nil)
	w.queue.Add(request("mover"))
	g.Eventually(w.queue.Len).Should(BeZero())
	g.Expect(w.called("mover")()).To(BeZero())

	w.set("mover", "", nil)
	w.queue.Add(request("mover"))
	g.Eventually(w.called("mover")).Should(Equal(1), "it is not held up by the lane that it left")

	release()
	g.Consistently(w.called("mover"), "50ms").Should(Equal(1))
}

func TestResults(t *testing.T) {
	for name, test := range map[string]struct {
		first    func(context.Context) (reconcile.Result, error)
		attempts int
	}{
		"a success is not repeated": {
			func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, nil }, 1},
		"an error is retried": {
			func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, errors.New("no answer") }, 2},
		"a terminal error is not": {
			func(context.Context) (reconcile.Result, error) {
				return reconcile.Result{}, reconcile.TerminalError(errors.New("wrong"))
			}, 1},
		"a panic is retried": {
			func(context.Context) (reconcile.Result, error) { panic("a bug") }, 2},
		"a time to requeue is respected": {
			func(context.Context) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Millisecond}, nil
			}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			first := true

			w.set("a", "lane", func(ctx context.Context) (reconcile.Result, error) {
				if first {
					first = false
					return test.first(ctx)
				}

				return reconcile.Result{}, nil
			})

			w.serve()
			w.queue.Add(request("a"))
			g.Eventually(w.called("a")).Should(Equal(test.attempts))
			g.Consistently(w.called("a"), "50ms").Should(Equal(test.attempts))
		})
	}
}

func TestStart(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	act, release := block() // ends with the manager

	defer release()

	w.set("a", "lane", act)
	w.serve()
	w.queue.Add(request("a"))
	g.Eventually(w.called("a")).Should(Equal(1))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- w.Start(ctx) }()

	g.Consistently(ended, "50ms").ShouldNot(Receive())
	stop()
	g.Eventually(ended).Should(Receive(BeNil()))

	w.set("b", "lane", nil)
	w.queue.Add(request("b"))
	g.Consistently(w.called("b"), "50ms").Should(BeZero(), "the manager has stopped")
}

func TestStuck(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	act, release := block()

	defer release()

	patience := lanes.Patience{All: 3 * time.Minute, One: 10 * time.Minute}
	stuckIn := func(age time.Duration) error { return w.Stuck(time.Now().Add(age), patience) }

	g.Expect(stuckIn(time.Hour)).To(Succeed(), "nothing is running")

	w.set("a", "", act)
	w.serve()
	w.queue.Add(request("a"))
	g.Eventually(w.called("a")).Should(Equal(1))

	g.Expect(stuckIn(2 * time.Minute)).To(Succeed())
	g.Expect(stuckIn(4 * time.Minute)).To(MatchError(
		"all 1 workers of CoreProvider are busy; the reconcile of ns/a has been running for 4m0s"))
	g.Expect(stuckIn(11 * time.Minute)).To(MatchError(
		"the reconcile of CoreProvider ns/a has been running for 11m0s"))

	release()
	g.Eventually(func() error { return stuckIn(time.Hour) }).Should(Succeed())
}
