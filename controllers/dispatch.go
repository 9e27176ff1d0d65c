package controllers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/controllers/lanes"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/watch"
)

const (
	// reconcileTimeout bounds a reconcile outside of lanes.
	reconcileTimeout = 5 * time.Minute
	// stuckAfter is how long all workers of a kind may take for the same reconciles, and oneStuckAfter
	// how long one may take, before the operator is not ready. restartAfter is when it is restarted.
	stuckAfter    = 3 * time.Minute
	oneStuckAfter = 10 * time.Minute
	restartAfter  = 15 * time.Minute
)

// newDispatcher returns the dispatcher of a kind, whose workers the probes of the operator check.
func newDispatcher(
	mgr ctrl.Manager, options Options, kind watch.Kind, reconciler crreconcile.Reconciler,
) (*lanes.Dispatcher, error) {
	laneOf := func(ctx context.Context, req ctrl.Request) string {
		provider := kind.Type.New()
		if err := mgr.GetClient().Get(ctx, req.NamespacedName, provider); err != nil {
			return "" // it is gone: there is nothing to wait for
		}

		return lanes.Of(provider)
	}

	dispatcher := lanes.New(reconciler, lanes.Options{
		Kind:        string(kind.Type),
		Workers:     options.Concurrency,
		Lane:        laneOf,
		RateLimiter: newRateLimiter(),
		Observe:     func(count, waiting int) { options.Metrics.SetLanes(kind.Type, count, waiting) },
	})

	if err := mgr.Add(dispatcher); err != nil {
		return nil, err
	}

	check := func(patience lanes.Patience) healthz.Checker {
		return func(*http.Request) error { return dispatcher.Stuck(time.Now(), patience) }
	}

	name := "workers-" + strings.ToLower(string(kind.Type))
	if err := mgr.AddReadyzCheck(name, check(lanes.Patience{All: stuckAfter, One: oneStuckAfter})); err != nil {
		return nil, err
	}

	return dispatcher, mgr.AddHealthzCheck(name, check(lanes.Patience{All: restartAfter, One: restartAfter}))
}

// newRateLimiter returns the back-off of failed reconciles.
func newRateLimiter() workqueue.TypedRateLimiter[crreconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[crreconcile.Request](time.Second, state.MaxBackoff)
}
