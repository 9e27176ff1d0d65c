package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// pause waits for a duration, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// allReady is like all for providers that are Ready.
func allReady(ctx context.Context, c client.Client, wanted int) error {
	return all(ctx, c, wanted, func(p v1alpha2.Provider) bool { return conditions.IsReady(p) })
}

// all polls until that many provider resources are ready. The more there are, the longer the
// interval, since polling is work for the API server, too.
func all(ctx context.Context, c client.Client, wanted int, isReady func(v1alpha2.Provider) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(wanted)*2*time.Second)
	defer cancel()

	for {
		ready, waiting := 0, ""

		for _, t := range v1alpha2.ProviderTypes() {
			list := t.NewList()
			if err := c.List(ctx, list); err != nil {
				return fmt.Errorf("not all of %d are ready: %w", wanted, err)
			}

			for _, p := range list.GetItems() {
				if isReady(p) {
					ready++
				} else {
					waiting = v1alpha2.Label(p) + ": " + conditions.GetMessage(p, v1alpha2.ReadyCondition)
				}
			}
		}

		if ready == wanted {
			return nil
		}

		pause(ctx, 20*time.Millisecond+time.Duration(wanted)*2*time.Millisecond)

		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d of %d are ready; another: %s: %w", ready, wanted, waiting, err)
		}
	}
}

// longQuiet is the period for quiet after much work, in which an operator may wait for something.
const longQuiet = 5 * time.Second

// quiet waits until an operator has used almost no processor time for a period, 2 % of one processor, and returns
// when that period began.
func quiet(ctx context.Context, operator *harness.Operator, period time.Duration) (time.Time, error) {
	const every = 250 * time.Millisecond

	steps := int(period / every)

	var taken []time.Duration // at each step
	for {
		taken = append(taken, operator.CPU())
		if n := len(taken) - 1; n >= steps && taken[n]-taken[n-steps] < period/50 {
			return time.Now().Add(-period), nil
		}

		pause(ctx, every)

		if ended, err := operator.Exited(); ended {
			return time.Time{}, fmt.Errorf("the operator has ended: %w", err)
		}

		if err := ctx.Err(); err != nil {
			return time.Time{}, err
		}
	}
}
