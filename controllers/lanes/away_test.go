package lanes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/controllers/lanes"
	"github.com/capstan-project/capstan/controllers/longwait"
)

// maxAway is how many reconciles may leave their workers.
const maxAway = 8

// waitLong returns an action that announces two long waits, and waits until it is released.
func waitLong() (act func(context.Context) (reconcile.Result, error), release func()) {
	wait, release := block()

	return func(ctx context.Context) (reconcile.Result, error) {
		longwait.Begin(ctx, "a Job")
		longwait.Begin(ctx, "another Job")

		return wait(ctx)
	}, release
}

func TestLongWaitLeavesItsWorker(t *testing.T) {
	for name, lane := range map[string]string{"the controller's only worker": "", "those of a lane": "fleet"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			act, release := waitLong()

			defer release()

			w.serve()

			for i := range maxAway {
				w.set(fmt.Sprint("waiting-", i), lane, act)
				w.queue.Add(request(fmt.Sprint("waiting-", i)))
			}

			w.set("other", lane, nil)
			w.queue.Add(request("other"))
			g.Eventually(w.called("other")).Should(Equal(1))

			for i := range maxAway {
				g.Expect(w.called(fmt.Sprint("waiting-", i))()).To(Equal(1))
			}

			g.Expect(w.Stuck(time.Now().Add(time.Hour), lanes.Patience{All: time.Minute, One: time.Minute})).To(Succeed())

			w.queue.Add(request("waiting-0"))
			g.Eventually(w.queue.Len).Should(BeZero())
			g.Consistently(w.called("waiting-0"), "50ms").Should(Equal(1))
			release()
			g.Eventually(w.called("waiting-0")).Should(Equal(2), "it was asked for meanwhile")
			g.Expect(w.twice).To(BeFalse())
		})
	}
}

func TestFewLeaveTheirWorkers(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	act, release := waitLong()

	defer release()

	w.serve()

	for i := range maxAway {
		w.set(fmt.Sprint("away-", i), "", act)
		w.queue.Add(request(fmt.Sprint("away-", i)))
	}

	g.Eventually(w.called(fmt.Sprint("away-", maxAway-1))).Should(Equal(1))

	stays, leave := waitLong()
	defer leave()

	w.set("stays", "", stays)
	w.queue.Add(request("stays"))
	w.queue.Add(request("other"))
	g.Eventually(w.called("stays")).Should(Equal(1))
	g.Consistently(w.called("other"), "50ms").Should(BeZero(), "the only worker is busy")

	leave()
	g.Eventually(w.called("other")).Should(Equal(1))
}

func TestThoseThatEndMakeRoom(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.serve()

	brief, end := waitLong()
	end()

	for i := range 2 * maxAway {
		name := fmt.Sprint("brief-", i)
		w.set(name, "", brief)
		w.queue.Add(request(name))
		g.Eventually(w.called(name)).Should(Equal(1))
	}

	act, release := waitLong()
	defer release()

	w.set("waiting", "", act)
	w.queue.Add(request("waiting"))
	w.queue.Add(request("other"))
	g.Eventually(w.called("other")).Should(Equal(1))
}

func TestResultsAfterALongWait(t *testing.T) {
	for name, test := range map[string]struct {
		end      func() (reconcile.Result, error)
		attempts int
	}{
		"a success":  {func() (reconcile.Result, error) { return reconcile.Result{}, nil }, 1},
		"an error":   {func() (reconcile.Result, error) { return reconcile.Result{}, errors.New("no answer") }, 2},
		"a panic":    {func() (reconcile.Result, error) { panic("a bug") }, 2},
		"a deadline": {func() (reconcile.Result, error) { return reconcile.Result{RequeueAfter: time.Millisecond}, nil }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			first := true

			w.set("a", "", func(ctx context.Context) (reconcile.Result, error) {
				if !first {
					return reconcile.Result{}, nil
				}

				first = false

				longwait.Begin(ctx, "a Job")
				g.Expect(ctx.Err()).NotTo(HaveOccurred())

				return test.end()
			})

			w.serve()
			w.queue.Add(request("a"))
			g.Eventually(w.called("a")).Should(Equal(test.attempts))
			g.Consistently(w.called("a"), "50ms").Should(Equal(test.attempts))
		})
	}
}

func TestStartWaitsForLongWaits(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	released := make(chan struct{})

	w.set("a", "", func(ctx context.Context) (reconcile.Result, error) {
		longwait.Begin(ctx, "a Job")
		<-released

		return reconcile.Result{}, ctx.Err()
	})
	w.serve()
	w.queue.Add(request("a"))
	w.queue.Add(request("b"))
	g.Eventually(w.called("b")).Should(Equal(1))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- w.Start(ctx) }()

	stop()
	g.Consistently(ended, "50ms").ShouldNot(Receive())
	close(released)
	g.Eventually(ended).Should(Receive(BeNil()))
}
